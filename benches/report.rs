//! Everything in a shorter form, as one page of tables and charts: `cargo bench --bench report`.
//!
//! ```text
//! cargo bench --bench report -- [FOLDER] [--readme] [--rounds N] [--only TEXT]
//! ```
//! Writes `report.md` and the charts into FOLDER (`target/report`); with `--readme` also the generated sections
//! of README.md, here and above, and the charts in `charts`. `--only` runs the groups whose name has the text.

#[allow(dead_code, reason = "the guard's part is not used here")]
mod counting;
mod groups;
mod peers;
mod plots;
mod readme;
#[allow(dead_code, reason = "Criterion's part is not used here")]
mod rounds;
#[path = "report"]
mod parts {
    pub(crate) mod charts;
    pub(crate) mod growth;
    pub(crate) mod machine;
    pub(crate) mod memory;
    pub(crate) mod page;
    pub(crate) mod results;
    pub(crate) mod targets;
}

use std::process::ExitCode;
use std::time::Duration;

use parts::results::{GroupResult, Results};
use parts::{charts, growth, machine, memory, page};
use rounds::Plan;

struct Arguments {
    folder: Option<String>,
    readme: bool,
    only: String,
    plan: Plan,
}

fn parse() -> Result<Arguments, lexopt::Error> {
    use lexopt::prelude::*;
    let mut arguments = Arguments {
        folder: None,
        readme: false,
        only: String::new(),
        plan: Plan { rounds: 31, batch: Duration::from_millis(5) },
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("readme") => arguments.readme = true,
            Long("rounds") => arguments.plan.rounds = parser.value()?.parse()?,
            Long("only") => arguments.only = parser.value()?.string()?,
            // Cargo's own.
            Long("bench") => {}
            Value(folder) => arguments.folder = Some(folder.string()?),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(arguments)
}

fn main() -> ExitCode {
    counting::run_if_child();
    growth::run_if_child();
    match parse().map_err(|error| error.to_string()).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let machine = machine::describe();
    rounds::threads::pin(0);
    let mut groups = Vec::new();
    for group in groups::all().filter(|group| group.name.contains(&arguments.only)) {
        eprintln!("{}", group.name);
        let measured = rounds::measure((group.make)(), arguments.plan);
        groups.push(GroupResult { name: group.name, measured });
    }
    eprintln!("growth, memory, instructions");
    let results = Results {
        groups,
        growth: growth::measure()?,
        memory: memory::measure(),
        counted: counting::cases::count_all(),
    };

    let folder = plots::folder(arguments.folder.clone())?;
    charts::draw(&results, &folder);
    let page = page::write(&results, &machine);
    std::fs::write(folder.join("report.md"), &page).map_err(|error| error.to_string())?;
    if arguments.readme {
        readme::replace(readme::OWN, "report", &page)?;
        let above = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
        readme::replace(above, "figures", &page::summary(&results, &machine))?;
        charts::draw(&results, &plots::folder(Some("benches/charts".to_string()))?);
    }
    println!("{page}");
    println!("In {}", folder.display());
    Ok(())
}
