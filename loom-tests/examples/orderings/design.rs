//! The table of orderings on the design page: which model fails without which, and where none does.

use anyhow::{Context as _, Result, bail, ensure};

use crate::sites::{Half, Mutant};

/// A row: some sites, what their orderings give, and what happens without.
pub(crate) struct Row {
    sites: Vec<Sites>,
    half: Half,
    /// In the order of the row.
    pub(crate) models: Vec<String>,
    /// Why no model fails.
    pub(crate) excuse: Option<String>,
}

/// Those of a function with these numbers, or all of them.
struct Sites {
    function: String,
    numbers: Vec<usize>,
}

impl Row {
    pub(crate) fn covers(&self, mutant: &Mutant<'_>) -> bool {
        self.half == mutant.lost
            && self.sites.iter().any(|sites| {
                sites.function == mutant.site.function
                    && (sites.numbers.is_empty() || sites.numbers.contains(&mutant.site.number))
            })
    }

    /// For messages.
    pub(crate) fn name(&self) -> String {
        let functions: Vec<_> = self.sites.iter().map(|sites| sites.function.as_str()).collect();
        format!("{}, {}", functions.join(", "), self.half)
    }
}

/// Reads the rows that ask for more than Relaxed.
///
/// First cell: `` `Type::function` ``, with `#2` behind it for the second ordering of the function alone;
/// `` `function` `` belongs to the type before it; empty, the row continues the one above. Third: the ordering.
/// Last: models, or `none:` and why.
pub(crate) fn rows(page: &str) -> Result<Vec<Row>> {
    let table = page
        .split_once("| site | operation | ordering |")
        .context("the design page has a table of orderings")?
        .1;
    let mut rows: Vec<Row> = Vec::new();
    let mut site = String::new();
    for line in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let &[_, first, _, ordering, _, _, last, _] = cells.as_slice() else {
            bail!("six cells in a row: {line}");
        };
        if !first.is_empty() {
            site = first.to_string();
        }
        let sites = sites(&site).with_context(|| line.to_string())?;
        let half = match ordering {
            "Acquire" => Half::Acquire,
            "Release" => Half::Release,
            "Relaxed" => continue,
            // Not those of the table's own words: the lock.
            _ if sites.is_empty() => continue,
            other => bail!("a row for each of Acquire and Release, not {other:?}: {line}"),
        };
        let excuse = last.strip_prefix("none: ").map(str::to_string);
        let models: Vec<_> = match excuse {
            Some(_) => Vec::new(),
            None => quoted(last).map(str::to_string).collect(),
        };
        ensure!(excuse.is_some() == models.is_empty(), "models, or none and why: {line}");
        rows.push(Row { sites, half, models, excuse });
    }
    ensure!(!rows.is_empty(), "the table of orderings is empty");
    Ok(rows)
}

/// What stands in backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn sites(cell: &str) -> Result<Vec<Sites>> {
    let mut sites: Vec<Sites> = Vec::new();
    // Odd pieces are names, even ones what follows them.
    for (at, piece) in cell.split('`').enumerate().skip(1) {
        if at % 2 == 1 {
            let owner = sites.last().and_then(|before| before.function.split_once("::"));
            let function = match (piece.contains("::"), owner) {
                (true, _) => piece.to_string(),
                (false, Some((owner, _))) => format!("{owner}::{piece}"),
                (false, None) => bail!("whose function is {piece}?"),
            };
            sites.push(Sites { function, numbers: Vec::new() });
        } else if let Some(last) = sites.last_mut() {
            for number in piece.split('#').skip(1) {
                let digits = number.trim_end_matches([',', ' ']);
                last.numbers.push(digits.parse().with_context(|| format!("#{digits}"))?);
            }
        }
    }
    Ok(sites)
}
