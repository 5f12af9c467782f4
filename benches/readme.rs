//! The generated sections of the benches' README.md, and of the one above.

/// The benches' own.
pub(crate) const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");

/// Puts `text` between the marks of a section.
pub(crate) fn replace(path: &str, section: &str, text: &str) -> Result<(), String> {
    let (begin, end) = (format!("<!-- {section}: begin -->\n"), format!("<!-- {section}: end -->"));
    let readme = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lost = || format!("{path} has lost the marks of {section}");
    let (before, rest) = readme.split_once(&begin).ok_or_else(lost)?;
    let (_, after) = rest.split_once(&end).ok_or_else(lost)?;
    std::fs::write(path, format!("{before}{begin}{text}{end}{after}"))
        .map_err(|error| error.to_string())
}
