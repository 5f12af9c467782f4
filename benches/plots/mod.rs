//! Line charts as SVG.

use std::path::{Path, PathBuf};

use plotters::prelude::*;

/// Where a report's files go: what the command line says, or `target/report`.
pub(crate) fn folder(argument: Option<String>) -> Result<PathBuf, String> {
    // Benches run in their package's folder; what is typed is meant from the workspace's.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join(argument.unwrap_or_else(|| "target/report".to_string()));
    let made = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    made.map_err(|error| format!("{}: {error}", folder.display()))
}

/// A chart whose x axis is logarithmic.
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) logarithmic_y: bool,
}

/// A name, and its points.
pub(crate) type Line = (String, Vec<(f64, f64)>);

impl Plot {
    /// On a logarithmic axis: where what is less, or nothing, is drawn.
    const LEAST: f64 = 0.01;

    /// Writes the file; a chart that can't be drawn is no reason to lose the figures.
    pub(crate) fn draw(&self, path: &Path, lines: &[Line]) {
        // Without a point there is no axis.
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.try_draw(path, lines) {
            eprintln!("{}: {error}", path.display());
        }
    }

    fn try_draw(&self, path: &Path, lines: &[Line]) -> Result<(), Box<dyn std::error::Error>> {
        let points = || lines.iter().flat_map(|(_, points)| points).copied();
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            values
                .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
        };
        let (left, right) = bounds(&mut points().map(|(x, _)| x));
        let (bottom, top) = bounds(&mut points().map(|(_, y)| y));
        let area = SVGBackend::new(path, (900, 520)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area);
        chart.caption(&self.title, ("sans-serif", 18)).margin(12).margin_right(32);
        chart.x_label_area_size(40).y_label_area_size(60);
        macro_rules! lines_on {
            ($chart:expr) => {{
                let mut chart = $chart;
                let mut mesh = chart.configure_mesh();
                mesh.x_label_formatter(&|x| x.to_string()).y_label_formatter(&|y| y.to_string());
                mesh.x_desc(self.x).y_desc(self.y).light_line_style(WHITE).draw()?;
                for (index, (name, points)) in lines.iter().enumerate() {
                    let style = Palette99::pick(index).stroke_width(2);
                    let least = if self.logarithmic_y { Self::LEAST } else { 0.0 };
                    let points = points.iter().map(|&(x, y)| (x, y.max(least)));
                    let line = LineSeries::new(points, style).point_size(3);
                    chart
                        .draw_series(line)?
                        .label(name)
                        .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
                }
                let mut labels = chart.configure_series_labels();
                labels.position(SeriesLabelPosition::UpperLeft).background_style(WHITE.mix(0.8));
                labels.border_style(BLACK).draw()?;
            }};
        }
        let x = (left..right.max(left * 2.0)).log_scale();
        if self.logarithmic_y {
            let y = (bottom.max(Self::LEAST) / 1.5..top.max(Self::LEAST) * 4.0).log_scale();
            lines_on!(chart.build_cartesian_2d(x, y)?);
        } else {
            lines_on!(chart.build_cartesian_2d(x, 0.0..top.max(1.0) * 1.5)?);
        }
        area.present()?;
        Ok(())
    }
}
