//! Each operation beside its peers, timed by Criterion: `cargo bench --bench operations -- lookup`.
//!
//! Criterion times one candidate after the other; for ratios take the report, which times them in turns.

use std::time::Duration;

use criterion::{Criterion, Throughput};

mod groups;
mod peers;
#[allow(dead_code, reason = "the report's part is not used here")]
mod rounds;

fn main() {
    rounds::threads::pin(0);
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();
    for group in groups::all() {
        let mut criterion = criterion.benchmark_group(group.name);
        for mut candidate in (group.make)() {
            criterion.throughput(Throughput::Elements(candidate.elements()));
            criterion.bench_function(candidate.name.clone(), |bencher| {
                bencher.iter_custom(|operations| candidate.run(operations));
            });
        }
        criterion.finish();
    }
    criterion.final_summary();
}
