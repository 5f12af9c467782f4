//! What has been measured.

use super::growth::Growth;
use super::memory::Memory;
use crate::counting::Counts;
use crate::rounds::Measured;

pub(crate) struct GroupResult {
    pub(crate) name: &'static str,
    /// The reference first.
    pub(crate) measured: Vec<Measured>,
}

pub(crate) struct Results {
    pub(crate) groups: Vec<GroupResult>,
    pub(crate) growth: Vec<Growth>,
    pub(crate) memory: Vec<Memory>,
    pub(crate) counted: Result<Vec<(&'static str, Counts)>, String>,
}

impl GroupResult {
    fn get(&self, candidate: &str) -> Option<&Measured> {
        self.measured.iter().find(|measured| measured.name == candidate)
    }
}

/// Each is `None` if it has not been measured in this run.
impl Results {
    fn group(&self, name: &str) -> Option<&GroupResult> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// A candidate's time over another one's.
    pub(crate) fn ratio(&self, group: &str, candidate: &str, other: &str) -> Option<f64> {
        let group = self.group(group)?;
        Some(group.get(candidate)?.over(group.get(other)?))
    }

    /// A candidate's time over that of the group's reference.
    pub(crate) fn over_reference(&self, group: &str, candidate: &str) -> Option<f64> {
        let group = self.group(group)?;
        Some(group.get(candidate)?.over(group.measured.first()?))
    }

    pub(crate) fn nanoseconds(&self, group: &str, candidate: &str) -> Option<f64> {
        Some(self.group(group)?.get(candidate)?.nanoseconds())
    }

    pub(crate) fn rmws(&self, operation: &str) -> Option<f64> {
        let counted = self.counted.as_ref().ok()?;
        let (_, counts) = counted.iter().find(|(name, _)| *name == operation)?;
        Some(counts.rmws as f64)
    }
}
