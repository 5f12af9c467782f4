//! The generated sections of README.md.

/// Puts `text` between the marks of a section.
pub(crate) fn replace(section: &str, text: &str) -> Result<(), String> {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let (begin, end) = (format!("<!-- {section}: begin -->\n"), format!("<!-- {section}: end -->"));
    let readme = std::fs::read_to_string(PATH).map_err(|error| error.to_string())?;
    let lost = || format!("README.md has lost the marks of {section}");
    let (before, rest) = readme.split_once(&begin).ok_or_else(lost)?;
    let (_, after) = rest.split_once(&end).ok_or_else(lost)?;
    std::fs::write(PATH, format!("{before}{begin}{text}{end}{after}"))
        .map_err(|error| error.to_string())
}
