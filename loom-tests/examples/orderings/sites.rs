//! Where the table asks for an ordering.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// What a memory ordering can give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    Acquire,
    Release,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One `Ordering::Acquire`, `Release` or `AcqRel` in the sources. Its name, file, function and number in the
/// function, stays when lines are added elsewhere.
pub(crate) struct Site {
    /// Below `src/`.
    pub(crate) file: String,
    /// `Slot::change`, or `segments::publish` for a function of a module.
    pub(crate) function: String,
    /// Counts the sites of the function, from 1.
    pub(crate) number: usize,
    pub(crate) line: usize,
    pub(crate) ordering: String,
    /// Of the whole path in the file's text.
    range: Range<usize>,
}

/// A site without one of the things that its ordering gives.
pub(crate) struct Mutant<'s> {
    pub(crate) site: &'s Site,
    pub(crate) lost: Half,
}

impl Site {
    pub(crate) fn mutants(&self) -> impl Iterator<Item = Mutant<'_>> {
        let halves: &[Half] = match self.ordering.as_str() {
            "Acquire" => &[Half::Acquire],
            "Release" => &[Half::Release],
            _ => &[Half::Acquire, Half::Release],
        };
        halves.iter().map(|&lost| Mutant { site: self, lost })
    }
}

impl Mutant<'_> {
    /// What is left.
    pub(crate) fn weaker(&self) -> &'static str {
        match (self.site.ordering.as_str(), self.lost) {
            ("AcqRel", Half::Acquire) => "Release",
            ("AcqRel", Half::Release) => "Acquire",
            _ => "Relaxed",
        }
    }
}

/// The name by which a run chooses the mutant.
impl fmt::Display for Mutant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { file, function, number, ordering, .. } = self.site;
        write!(f, "src/{file} {function} #{number} {ordering} -> {}", self.weaker())
    }
}

/// The sites of one file, in the order of the text.
pub(crate) fn find(file: &str, text: &str) -> Result<Vec<Site>> {
    let syntax = syn::parse_file(text).with_context(|| format!("src/{file}"))?;
    let module = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut finder = Finder {
        file,
        owner: vec![module],
        function: None,
        counts: BTreeMap::new(),
        sites: vec![],
    };
    finder.visit_file(&syntax);
    let mut sites = finder.sites;
    sites.sort_by_key(|site| site.range.start);
    for site in &sites {
        let written: String = text[site.range.clone()].split_whitespace().collect();
        ensure!(written == format!("Ordering::{}", site.ordering), "{file}: {written} misplaced");
    }
    Ok(sites)
}

/// The text in which every site asks at run time which ordering to use.
pub(crate) fn switched(text: &str, sites: &[Site]) -> String {
    let mut text = text.to_string();
    for site in sites.iter().rev() {
        let mut expression = format!("Ordering::{}", site.ordering);
        for mutant in site.mutants() {
            expression = format!(
                "crate::planted::weaken(\"{mutant}\", {expression}, Ordering::{})",
                mutant.weaker()
            );
        }
        text.replace_range(site.range.clone(), &expression);
    }
    text
}

struct Finder<'f> {
    file: &'f str,
    /// The module, then the types whose `impl` we are in.
    owner: Vec<String>,
    function: Option<String>,
    counts: BTreeMap<String, usize>,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn inside(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        let function = format!("{}::{name}", self.owner.last().expect("the module at least"));
        let outer = self.function.replace(function);
        visit(self);
        self.function = outer;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // The unit tests.
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let syn::Type::Path(path) = &*item.self_ty
            && let Some(last) = path.path.segments.last()
        {
            self.owner.push(last.ident.to_string());
            visit::visit_item_impl(self, item);
            self.owner.pop();
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.inside(&item.sig.ident, |finder| visit::visit_item_fn(finder, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.inside(&item.sig.ident, |finder| visit::visit_impl_item_fn(finder, item));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [.., kind, ordering] = names.as_slice()
            && kind == "Ordering"
            && ["Acquire", "Release", "AcqRel"].contains(&ordering.as_str())
        {
            let function = self.function.clone().unwrap_or_default();
            let count = self.counts.entry(function.clone()).or_default();
            *count += 1;
            self.sites.push(Site {
                file: self.file.to_string(),
                function,
                number: *count,
                line: path.span().start().line,
                ordering: ordering.clone(),
                range: path.span().byte_range(),
            });
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let tokens = mac.tokens.to_string();
        for ordering in ["Acquire", "Release", "AcqRel", "SeqCst"] {
            assert!(
                !tokens.contains(&format!("Ordering :: {ordering}")),
                "{}: an ordering in a macro's arguments is not found",
                self.file
            );
        }
    }
}
