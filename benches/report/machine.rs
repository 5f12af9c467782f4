//! Where and when a report was made.

use std::fs::read_to_string;
use std::process::Command;

/// One paragraph.
pub(crate) fn describe() -> String {
    let cpu_info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{model}, {cores} processors, {}, Linux {}; {}; load average before the run {}.",
        std::env::consts::ARCH,
        read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        [output("rustc", &["--version"]), output("date", &["-u", "+%F"])].join("; "),
        load.split(' ').next().unwrap_or("unknown"),
    )
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().map(|output| output.stdout);
    String::from_utf8_lossy(&output.unwrap_or_default()).trim().to_string()
}
