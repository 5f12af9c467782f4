//! Histories written by hand.

use super::*;

#[test]
fn numbers_are_the_lowest_at_one_instant() {
    allowed(case(&[(0, A)]).thread([close(0)]).thread([insert(B, 0)]).ends(&[(0, B)]));
    allowed(case(&[(0, A)]).thread([close(0)]).thread([insert(B, 1)]).ends(&[(1, B)]));
    forbidden(case(&[(0, A)]).thread([close(0)]).thread([insert(B, 2)]).ends(&[(2, B)]));
    // Low first, then high: 1 is never free while 0 is not.
    let low_then_high = || case(&[(0, A), (1, B)]).thread([close(0), close(1)]);
    forbidden(low_then_high().thread([insert(C, 1)]).ends(&[(1, C)]));
    allowed(low_then_high().thread([insert(C, 2)]).ends(&[(2, C)]));
    allowed(low_then_high().thread([insert_from(1, C, 1)]).ends(&[(1, C)]));
    let full = bad(Op::Insert { min: 3, file: B, flags: NONE }, Errno::EMFILE);
    forbidden(case(&[(0, A)]).thread([full]).ends(&[(0, A)]));
}

#[test]
fn two_owners_of_one_number() {
    forbidden(case(&[]).thread([insert(A, 0)]).thread([insert(B, 0)]).ends(&[(0, B)]));
    forbidden(
        case(&[])
            .thread([reserve(0), abandon(0)])
            .thread([insert(B, 0), close(0), miss(0)])
            .ends(&[(0, B)]),
    );
    allowed(
        case(&[])
            .thread([reserve(0), abandon(0)])
            .thread([insert(B, 0), close(0), miss(0)])
            .ends(&[]),
    );
    let reserved = |n| case(&[]).thread([reserve(0), install(A, 0)]).thread([insert(B, n)]);
    allowed(reserved(1).ends(&[(0, A), (1, B)]));
    forbidden(reserved(0).ends(&[(0, A)]));
}

#[test]
fn a_miss_orders_nothing() {
    let both = || {
        case(&[(2, C), (3, C)])
            .thread([insert_from(0, A, 0), miss(1)])
            .thread([insert_from(1, B, 1), miss(0)])
    };
    allowed(both().ends(&[(0, A), (1, B), (2, C), (3, C)]));
    // Two observers that disagree on which came first.
    allowed(
        case(&[])
            .thread([insert_from(0, A, 0)])
            .thread([insert_from(1, B, 1)])
            .thread([get(0, A), miss(1)])
            .thread([get(1, B), miss(0)])
            .ends(&[(0, A), (1, B)]),
    );
}

#[test]
fn a_hit_does() {
    let installed = || case(&[]).thread([insert(A, 0), insert(B, 1)]);
    allowed(installed().thread([get(0, A), miss(1)]).ends(&[(0, A), (1, B)]));
    forbidden(installed().thread([get(1, B), miss(0)]).ends(&[(0, A), (1, B)]));
    // By way of a third.
    let third = || installed().thread([get(1, B), insert(C, 2)]);
    forbidden(third().thread([get(2, C), miss(0)]).ends(&[(0, A), (1, B), (2, C)]));
    allowed(third().thread([miss(0), get(2, C)]).ends(&[(0, A), (1, B), (2, C)]));
    // A thread knows what it did itself.
    forbidden(case(&[]).thread([insert(A, 0), miss(0)]).ends(&[(0, A)]));
    forbidden(case(&[(0, A)]).thread([close(0), get(0, A)]).ends(&[]));
    // A close that finds nothing comes after the one that did, and after all that this one knew.
    let closed = || case(&[(0, A), (1, B)]).thread([close(1), close(0)]);
    forbidden(closed().thread([not_open(0), get(1, B)]).ends(&[]));
}

#[test]
fn one_file_at_a_time() {
    let replaced = || case(&[(0, A)]).thread([replace(0, B, Some(A))]);
    allowed(replaced().thread([get(0, A), get(0, B)]).ends(&[(0, B)]));
    forbidden(replaced().thread([get(0, B), get(0, A)]).ends(&[(0, B)]));
    forbidden(replaced().thread([miss(0)]).ends(&[(0, B)]));
    forbidden(replaced().thread([replace(0, C, Some(A))]).ends(&[(0, C)]));
    forbidden(
        case(&[(0, A), (1, B)]).thread([dup2(1, 0)]).thread([miss(0)]).ends(&[(0, B), (1, B)]),
    );
    forbidden(case(&[(0, A)]).thread([close(0)]).thread([close(0)]).ends(&[]));
    forbidden(case(&[(0, A)]).thread([close(0)]).ends(&[(0, A)]));
    forbidden(case(&[(0, A)]).thread([not_open(0)]).ends(&[(0, A)]));
}

#[test]
fn inserts_and_closes_have_two_steps() {
    // The fd is gone, and its number not yet free.
    allowed(case(&[(0, A)]).thread([close(0)]).thread([miss(0), insert(B, 1)]).ends(&[(1, B)]));
    // The number is free, and the fd not yet gone.
    forbidden(
        case(&[(0, A), (1, B)])
            .thread([close(0)])
            .thread([insert(C, 0)])
            .thread([get(0, C), get(0, A)])
            .ends(&[(0, C), (1, B)]),
    );
    // Claimed and empty.
    allowed(case(&[(1, B)]).thread([insert(A, 0)]).thread([busy(1, 0)]).ends(&[(0, A), (1, B)]));
    allowed(case(&[(0, A), (1, B)]).thread([close(0)]).thread([busy(1, 0)]).ends(&[(1, B)]));
    forbidden(case(&[(1, B)]).thread([get(1, B)]).thread([busy(1, 0)]).ends(&[(1, B)]));
    forbidden(case(&[(0, A), (1, B)]).thread([busy(1, 0)]).ends(&[(0, A), (1, B)]));
}

#[test]
fn a_fork_is_one_instant() {
    let closed = |child: &[(u32, File)]| {
        let closes = case(&[(0, A), (1, B)]).thread([close(0), close(1)]);
        closes.thread([fork(child)]).ends(&[])
    };
    allowed(closed(&[(0, A), (1, B)]));
    allowed(closed(&[(1, B)]));
    allowed(closed(&[]));
    forbidden(closed(&[(0, A)]));
    let installed = |child: &[(u32, File)]| {
        let inserts = case(&[]).thread([insert(A, 0), insert(B, 1)]);
        inserts.thread([fork(child)]).ends(&[(0, A), (1, B)])
    };
    allowed(installed(&[(0, A)]));
    forbidden(installed(&[(1, B)]));
    // The failing history of a flag that changes check before they begin.
    let observed = |child: &[(u32, File)]| {
        let closes = case(&[(0, A), (1, B)]).thread([close(0), get(1, B)]);
        closes.thread([replace(1, C, Some(B))]).thread([fork(child)]).ends(&[(1, C)])
    };
    allowed(observed(&[(1, B)]));
    forbidden(observed(&[(0, A), (1, C)]));
    // That of passes that look only for new files.
    let passes = |child: &[(u32, File)]| {
        let filled = case(&[]).thread([insert_from(1, B, 1), insert_from(2, C, 2)]);
        let emptied = filled.thread([insert(A, 0), close(1)]);
        emptied.thread([fork(child)]).ends(&[(0, A), (2, C)])
    };
    allowed(passes(&[(0, A), (1, B)]));
    allowed(passes(&[(1, B), (2, C)]));
    forbidden(passes(&[(2, C)]));
    // What is reserved is free in it; an fd with CLOFORK as well.
    forbidden(case(&[]).thread([fork(&[(0, A)]), insert(A, 0)]).ends(&[(0, A)]));
    let clofork = told(Op::SetFlags(0, FdFlags::CLOFORK), Outcome::Done);
    let left_out = |child| case(&[(0, A)]).thread([clofork.clone(), fork(child)]);
    allowed(left_out(&[]).ends_with(vec![(0, A, FdFlags::CLOFORK)]));
    forbidden(left_out(&[(0, A)]).ends_with(vec![(0, A, FdFlags::CLOFORK)]));
}

#[test]
fn a_renumber_is_one_step_but_to_lookups() {
    let moved = || case(&[(0, A), (1, B)]).thread([renumber(0, 1)]);
    allowed(moved().thread([miss(0), get(1, B), get(1, A)]).ends(&[(1, A)]));
    forbidden(moved().thread([get(1, A), get(0, A)]).ends(&[(1, A)]));
    allowed(moved().thread([fork(&[(1, A)])]).ends(&[(1, A)]));
    allowed(moved().thread([fork(&[(0, A), (1, B)])]).ends(&[(1, A)]));
    forbidden(moved().thread([fork(&[(1, B)])]).ends(&[(1, A)]));
    forbidden(moved().thread([fork(&[(0, A), (1, A)])]).ends(&[(1, A)]));
    forbidden(moved().thread([not_open(0), replace(1, C, Some(B))]).ends(&[(1, A)]));
    forbidden(case(&[(0, A)]).thread([renumber(0, 1)]).ends(&[(1, A)]));
}

#[test]
fn sweeps_and_iterations_take_each_fd_by_itself() {
    let closed = || case(&[(0, A), (1, B)]).thread([close(0), close(1)]);
    allowed(closed().thread([iterate(&[(0, A)])]).ends(&[]));
    allowed(closed().thread([iterate(&[(1, B)])]).ends(&[]));
    forbidden(closed().thread([iterate(&[(0, A), (0, A)])]).ends(&[]));
    forbidden(closed().thread([iterate(&[(2, C)])]).ends(&[]));
    // What is open throughout is shown.
    forbidden(
        case(&[(0, A)]).thread([iterate(&[])]).thread([insert(B, 1)]).ends(&[(0, A), (1, B)]),
    );

    let all = CloseRange::empty();
    allowed(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 1)]).ends(&[]));
    allowed(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 1)]).ends(&[(1, B)]));
    allowed(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 0)]).ends(&[(0, B)]));
    forbidden(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 1)]).ends(&[(0, A)]));
    forbidden(case(&[(0, A)]).thread([insert(B, 1), sweep(all)]).ends(&[(1, B)]));
    let outside =
        told(Op::CloseRange { first: 1, last: 1, how: CloseRange::EXCEPT }, Outcome::Done);
    allowed(case(&[(0, A), (1, B)]).thread([outside.clone()]).ends(&[(1, B)]));
    forbidden(case(&[(0, A), (1, B)]).thread([outside]).ends(&[(0, A)]));
    let exec = || {
        case(&[(0, A)]).thread([sweep(CloseRange::CLOEXEC), told(Op::CloseOnExec, Outcome::Done)])
    };
    allowed(exec().ends(&[]));
    forbidden(exec().ends_with(vec![(0, A, CLOEXEC)]));
    forbidden(case(&[(0, A)]).thread([sweep(CloseRange::CLOEXEC_ONLY)]).ends(&[]));
}

#[test]
fn cloexec_on_a_reserved_number_stays() {
    let flagged = || {
        let owner = case(&[]).thread([at(1, 2, reserve(0)), at(5, 6, install(A, 0))]);
        owner.thread([at(3, 4, sweep(CloseRange::CLOEXEC))])
    };
    allowed(flagged().ends_with(vec![(0, A, CLOEXEC)]));
    forbidden(flagged().ends(&[(0, A)]));
    // Not with the next owner.
    let next = |how| case(&[]).thread([reserve(0), sweep(how), abandon(0), insert(A, 0)]);
    allowed(next(CloseRange::CLOEXEC).ends(&[(0, A)]));
    forbidden(next(CloseRange::CLOEXEC).ends_with(vec![(0, A, CLOEXEC)]));
}

#[test]
fn a_limit_is_one_that_was_there_during_the_call() {
    let lowered = |first, second| {
        let lower = case(&[(0, A)]).thread([at(first, first + 1, limit(1))]);
        lower.thread([at(second, second + 3, insert(B, 1))]).ends(&[(0, A), (1, B)])
    };
    allowed(lowered(2, 1));
    allowed(lowered(5, 1));
    forbidden(lowered(1, 5));
}

#[test]
fn with_a_clock_who_has_returned_comes_first() {
    let insert_and_miss = |(one, two): (u64, u64)| {
        let first = case(&[]).thread([at(one, one + 1, insert(A, 0))]);
        first.thread([at(two, two + 2, miss(0))]).ends(&[(0, A)])
    };
    forbidden(insert_and_miss((1, 3)));
    allowed(insert_and_miss((2, 1)));
    let both = case(&[])
        .thread([at(1, 2, insert_from(0, A, 0)), at(5, 8, miss(1))])
        .thread([at(3, 4, insert_from(1, B, 1)), at(6, 7, miss(0))]);
    forbidden(both.ends(&[(0, A), (1, B)]));
    // What it showed when it returned, not what it did later.
    allowed(
        case(&[])
            .thread([at(1, 2, insert(A, 0)), at(4, 9, insert(B, 1))])
            .thread([at(3, 8, miss(1))])
            .ends(&[(0, A), (1, B)]),
    );
}
