//! The text of a recorded policy: as it was written, and amended when it is asked for.

use crate::record::amendments::Amendment;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sluice_policy::edit::{SubscriberChange, with_subscribers};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The text of a policy in force. Most commands do not look at it, and that of a large network takes long to amend.
#[derive(Debug, Clone)]
pub struct RecordedText {
    written: Arc<str>,
    amendments: Arc<[Amendment]>,
    amended: OnceLock<Arc<str>>,
}

impl RecordedText {
    /// This text with amendments, one after the other.
    pub(crate) fn amended(self, amendments: Vec<Amendment>) -> RecordedText {
        RecordedText { written: Arc::clone(self.whole()), amendments: amendments.into(), amended: OnceLock::new() }
    }

    /// Whether it has amendments that are not in the file that it was read from.
    pub(crate) fn has_amendments(&self) -> bool {
        !self.amendments.is_empty()
    }

    fn whole(&self) -> &Arc<str> {
        if self.amendments.is_empty() {
            return &self.written;
        }
        self.amended.get_or_init(|| {
            let changes: Vec<SubscriberChange> = self.amendments.iter().flat_map(|one| one.changes.clone()).collect();
            // They were made upon this text.
            with_subscribers(&self.written, &changes).map_or_else(|_| Arc::clone(&self.written), Arc::from)
        })
    }
}

impl Deref for RecordedText {
    type Target = str;

    fn deref(&self) -> &str {
        self.whole()
    }
}

impl From<String> for RecordedText {
    fn from(text: String) -> RecordedText {
        RecordedText { written: text.into(), amendments: Arc::new([]), amended: OnceLock::new() }
    }
}

impl PartialEq for RecordedText {
    fn eq(&self, other: &RecordedText) -> bool {
        **self == **other
    }
}

impl Serialize for RecordedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RecordedText, D::Error> {
        String::deserialize(deserializer).map(RecordedText::from)
    }
}
