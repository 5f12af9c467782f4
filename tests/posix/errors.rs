//! Errors.

use super::*;

#[test]
fn error_numbers_are_those_of_linux() {
    assert_eq!(BadFd.errno().get(), 9);
    assert_eq!(OutOfMemory.errno().get(), 12);
    assert_eq!(ReserveError::LimitReached.errno().get(), 24);
    assert_eq!(ReserveError::OutOfMemory.errno().get(), 12);
    assert_eq!(DupError::BadFd.errno().get(), 9);
    assert_eq!(DupError::MinimumTooLarge.errno().get(), 22);
    assert_eq!(DupError::LimitReached.errno().get(), 24);
    assert_eq!(DupError::OutOfMemory.errno().get(), 12);
    assert_eq!(ReplaceError::BadFd.errno().get(), 9);
    assert_eq!(ReplaceError::InvalidArgument.errno().get(), 22);
    assert_eq!(ReplaceError::Busy.errno().get(), 16);
    assert_eq!(ReplaceError::OutOfMemory.errno().get(), 12);
    assert_eq!(CloseRangeError::InvalidArgument.errno().get(), 22);
    assert_eq!(CloseRangeError::OutOfMemory.errno().get(), 12);
    assert_eq!(RestoreError::BadFd.errno().get(), 9);
    assert_eq!(RestoreError::Duplicate.errno().get(), 22);
    assert_eq!(RestoreError::OutOfMemory.errno().get(), 12);
    assert_eq!(CloseError::BadFd.errno().get(), 9);
    assert_eq!(CloseError::Flush(Errno::EIO).errno().get(), 5);
    assert_eq!((Errno::EAGAIN.get(), Errno::ENFILE.get(), Errno::ENOSPC.get()), (11, 23, 28));
    assert_eq!(Errno::new(9), Errno::EBADF);
}

#[test]
fn errors_convert_along_the_layers() {
    assert_eq!(ReserveError::from(OutOfMemory), ReserveError::OutOfMemory);
    assert_eq!(CloseRangeError::from(OutOfMemory), CloseRangeError::OutOfMemory);
    assert_eq!(DupError::from(BadFd), DupError::BadFd);
    assert_eq!(DupError::from(ReserveError::LimitReached), DupError::LimitReached);
    assert_eq!(DupError::from(ReserveError::OutOfMemory), DupError::OutOfMemory);
    assert_eq!(ReplaceError::from(BadFd), ReplaceError::BadFd);
}

#[test]
fn errors_display_as_lowercase_phrases() {
    let errors: [&dyn Error; 12] = [
        &BadFd,
        &OutOfMemory,
        &ReserveError::LimitReached,
        &DupError::MinimumTooLarge,
        &ReplaceError::Busy,
        &ReplaceError::InvalidArgument,
        &CloseRangeError::InvalidArgument,
        &RestoreError::Duplicate,
        &CloseError::BadFd,
        &CloseError::Flush(Errno::EIO),
        &Errno::EBADF,
        &Errno::new(4095),
    ];
    let mut seen = HashMap::new();
    for error in errors {
        let text = error.to_string();
        assert!(text.starts_with(|first: char| first.is_ascii_lowercase()), "{text}");
        assert!(!text.ends_with('.'), "{text}");
        *seen.entry(text).or_insert(0) += 1;
    }
    assert!(CloseError::Flush(Errno::EIO).to_string().contains(&Errno::EIO.to_string()));
    assert_eq!(format!("{:?} {:?}", Errno::EMFILE, Errno::new(4095)), "EMFILE Errno(4095)");

    let rejected = FdTable::new().limited(0).insert('x', NONE).unwrap_err();
    let source = rejected.source().unwrap().downcast_ref();
    assert_eq!(source, Some(&ReserveError::LimitReached));
}
