//! Coherence misses per operation on 2 to 256 cores, in a model: `cargo coherence -- [FOLDER] [--readme]`.
//!
//! The table runs as it is, on one thread, with every access to an atomic recorded; the model deals the
//! operations out to virtual cores. See README.md for what that can't show.

#[cfg(traced)]
#[path = "coherence"]
mod parts {
    pub(crate) mod model;
    pub(crate) mod patterns;
    pub(crate) mod subjects;
    pub(crate) mod workloads;
}
#[cfg(traced)]
mod plots;
#[cfg(traced)]
mod readme;

#[cfg(not(traced))]
fn main() {
    println!("skipped: coherence: runs as `cargo coherence`, which records the table's accesses");
}

#[cfg(traced)]
fn main() -> std::io::Result<()> {
    use std::fmt::Write as _;

    use parts::{model, subjects, workloads};

    model::check();
    let argument = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = plots::folder(argument).map_err(std::io::Error::other)?;
    let counts = [2, 4, 8, 16, 32, 64, 128, 256];
    let mut text = String::new();
    for workload in workloads::ALL {
        let _ =
            writeln!(text, "\n{}: misses (invalidations) per {}\n", workload.name, workload.unit);
        let _ = writeln!(text, "| cores |{}", counts.map(|cores| format!(" {cores} |")).concat());
        let _ = writeln!(text, "|---|{}", "---:|".repeat(counts.len()));
        let mut lines = Vec::new();
        for &(name, new) in subjects::ALL {
            let costs = counts.map(|cores| workload.run(new, cores));
            let cells =
                costs.map(|cost| format!(" {:.2} ({:.2}) |", cost.misses, cost.invalidations));
            let _ = writeln!(text, "| {name} |{}", cells.concat());
            let points = counts.iter().zip(costs).map(|(&cores, cost)| (cores as f64, cost.misses));
            lines.push((name.to_string(), points.collect()));
        }
        let plot = plots::Plot {
            title: format!("{}: coherence misses per {}", workload.name, workload.unit),
            x: "cores",
            y: "misses (0.01: none)",
            logarithmic_y: true,
        };
        plot.draw(
            &folder.join(format!("coherence-{}.svg", workload.name.replace(' ', "-"))),
            &lines,
        );
    }
    print!("{text}");
    if std::env::args().any(|argument| argument == "--readme") {
        readme::replace(readme::OWN, "coherence", &format!("{text}\n"))
            .map_err(std::io::Error::other)?;
    }
    std::fs::write(folder.join("coherence.md"), text)
}
