//! An index of the subscribers of a record's policy, in a file beside it: a change of one subscriber reads that one, and not the network.
//!
//! It can be made anew from the record, and is of no use once the record or its amendments are others. Words of eight bytes: a head, sums of guarantees,
//! and a table of subscribers, ordered by the hash of the key; then the record with the rest of its policy, as JSON, and the texts of the subscribers.

use crate::record::amendments::{Amendments, FileId};
use crate::record::history::{self, Known};
use crate::record::recorded_text::RecordedText;
use crate::record::{Phase, Record, file, policy};
use crate::system::private;
use serde::{Deserialize, Serialize};
use sluice_policy::edit::{Frame, taken_apart};
use sluice_policy::network::{EachWay, Guarantees};
use sluice_tables::tree::owner_of_subscriber;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// "sluiceS1".
const MAGIC: u64 = u64::from_le_bytes(*b"sluiceS1");
/// Words of the head: the magic number, and those of [`Head`].
const HEAD_WORDS: usize = 13;
/// Words of a sum of guarantees: down, then up, the lower half first.
const SUM_WORDS: usize = 4;
/// Words of a subscriber in the table: the hash of its key, the place and the length of its text.
const ENTRY_WORDS: usize = 3;
/// An index with so many changed texts behind it is made anew.
const LONGEST_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone, Copy)]
struct Head {
    record: FileId,
    rest_bytes: u64,
    subscribers: u64,
    sites: u64,
    generation: u64,
    amendments_bytes: u64,
    history: Known,
}

impl Head {
    fn words(&self) -> [u64; HEAD_WORDS] {
        let Head { record, rest_bytes, subscribers, sites, generation, amendments_bytes, history } = *self;
        let [inode, modified_ns, length_bytes] = file_words(record);
        let [history_inode, history_modified_ns, history_bytes] = file_words(history.file);
        [
            MAGIC,
            inode,
            modified_ns,
            length_bytes,
            rest_bytes,
            subscribers,
            sites,
            generation,
            amendments_bytes,
            history_inode,
            history_modified_ns,
            history_bytes,
            history.generation.into(),
        ]
    }

    fn read(words: &[u64]) -> Option<Head> {
        let &[
            MAGIC,
            inode,
            modified_ns,
            length_bytes,
            rest_bytes,
            subscribers,
            sites,
            generation,
            amendments_bytes,
            history_inode,
            history_modified_ns,
            history_bytes,
            known,
        ] = words
        else {
            return None;
        };
        let record = FileId { inode, modified_ns, length_bytes };
        let file = FileId { inode: history_inode, modified_ns: history_modified_ns, length_bytes: history_bytes };
        let history = Known { file, generation: u32::try_from(known).ok()? };
        Some(Head { record, rest_bytes, subscribers, sites, generation, amendments_bytes, history })
    }

    /// Words of the sums.
    fn sums(&self) -> usize {
        SUM_WORDS * (1 + self.sites as usize)
    }

    /// The first word of a subscriber in the table.
    fn entry_at(&self, number: u64) -> usize {
        HEAD_WORDS + self.sums() + ENTRY_WORDS * number as usize
    }

    /// The first byte of the rest.
    fn rest_at(&self) -> u64 {
        8 * self.entry_at(self.subscribers) as u64
    }
}

/// The record, without its subscribers.
#[derive(Serialize, Deserialize)]
struct Rest {
    /// The policy's text has an empty list.
    record: Record,
    /// Bytes before the list's closing bracket.
    before: usize,
}

/// An index that agrees with the record and its amendments.
pub(crate) struct SubscriberIndex {
    file: File,
    head: Head,
    rest: Rest,
    /// The sums of what subscribers are guaranteed.
    pub guarantees: Guarantees,
}

fn path(key: &str) -> PathBuf {
    file(key).with_extension("subscribers")
}

impl SubscriberIndex {
    /// Writes the index of a record in force. One that cannot be written is missing, and the next change takes longer.
    pub fn write(record: &Record) {
        let path = path(&record.key);
        let partial = path.with_extension("subscribers-partial");
        let written = content(record)
            .map(|bytes| private::file(&partial).and_then(|file| write_whole(file, &bytes)))
            .is_some_and(|written| written.and_then(|()| fs::rename(&partial, &path)).is_ok());
        if !written {
            let _ = fs::remove_file(&partial);
            SubscriberIndex::remove(&record.key);
        }
    }

    /// Removes the index of a key.
    pub fn remove(key: &str) {
        // One that stays agrees with no record.
        let _ = fs::remove_file(path(key));
    }

    /// Opens the index of a key. None: there is none, or it does not agree with the record and its amendments.
    pub fn open(key: &str) -> Option<SubscriberIndex> {
        let file = private::file_that_is_there(&path(key)).ok()?;
        let head = Head::read(&read_words(&file, 0, HEAD_WORDS).ok()?)?;
        // No network has as many.
        if head.subscribers.max(head.sites) > u64::from(u16::MAX) || head.rest_bytes > LONGEST_BYTES {
            return None;
        }
        let record_path = super::file(key);
        let now = FileId::at(&record_path).ok()?;
        if now != head.record || file.metadata().ok()?.len() > LONGEST_BYTES {
            return None;
        }
        if Amendments::of(&record_path, now).length_bytes() != head.amendments_bytes {
            return None;
        }
        let sums = read_words(&file, HEAD_WORDS, head.sums()).ok()?;
        let mut rest = vec![0; usize::try_from(head.rest_bytes).ok()?];
        file.read_exact_at(&mut rest, head.rest_at()).ok()?;
        let mut rest: Rest = serde_json::from_slice(&rest).ok()?;
        rest.record.generation = u32::try_from(head.generation).ok()?;
        Some(SubscriberIndex { guarantees: sums_of(&sums), file, head, rest })
    }

    /// The record, with a policy that lists no subscriber. Time and message are those of the change that has written it.
    pub fn record(&self) -> &Record {
        &self.rest.record
    }

    /// The amendments of the record.
    pub fn amendments(&self) -> Amendments {
        Amendments::of(&super::file(&self.rest.record.key), self.head.record)
    }

    /// The policy's text around its list of subscribers.
    pub fn frame(&self) -> Option<Frame<'_>> {
        let (before, behind) = self.rest.record.policy.split_at_checked(self.rest.before)?;
        Some(Frame { before, behind })
    }

    /// The text of a subscriber. None: no subscriber has this key.
    pub fn subscriber(&self, key: &str) -> Option<String> {
        let (_, entry) = self.entry(key)?;
        let mut text = vec![0; usize::try_from(entry[2]).ok()?];
        self.file.read_exact_at(&mut text, entry[1]).ok()?;
        String::from_utf8(text).ok()
    }

    /// The number of a subscriber in the table, and its words.
    fn entry(&self, key: &str) -> Option<(u64, Vec<u64>)> {
        let hash = owner_of_subscriber(key);
        let (mut from, mut to) = (0, self.head.subscribers);
        while from < to {
            let middle = from + (to - from) / 2;
            let words = read_words(&self.file, self.head.entry_at(middle), ENTRY_WORDS).ok()?;
            match words[0].cmp(&hash) {
                std::cmp::Ordering::Equal => return Some((middle, words)),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// The history's file, and the last configuration that it knows.
    pub fn history(&self) -> Known {
        self.head.history
    }

    /// Makes the index agree with the record after an amendment: these subscribers have other texts, the sums are others, and so much is known of the
    /// history.
    pub fn amend(&mut self, generation: u32, subscribers: &[(String, String)], guarantees: Guarantees, history: Known) {
        let amended = || -> io::Result<Head> {
            for (key, text) in subscribers {
                let (number, _) = self.entry(key).ok_or(io::ErrorKind::NotFound)?;
                let at = self.file.metadata()?.len();
                self.file.write_all_at(text.as_bytes(), at)?;
                write_words(&self.file, self.head.entry_at(number) + 1, &[at, text.len() as u64])?;
            }
            write_words(&self.file, HEAD_WORDS, &words_of(&guarantees, self.head.sites as usize))?;
            let amendments_bytes = self.amendments().length_bytes();
            let head = Head { generation: generation.into(), amendments_bytes, history, ..self.head };
            // It comes last: the amendment counts from then on.
            write_words(&self.file, 0, &head.words())?;
            Ok(head)
        };
        match amended() {
            Ok(head) => {
                self.head = head;
                self.rest.record.generation = generation;
                self.guarantees = guarantees;
            }
            Err(_) => SubscriberIndex::remove(&self.rest.record.key),
        }
    }
}

/// The content of the index of a record. None: its change is not done, or its policy lists no subscribers.
fn content(record: &Record) -> Option<Vec<u8>> {
    if record.phase != Phase::Active || record.before.is_some() || record.unconfirmed.is_some() {
        return None;
    }
    let network = policy::parse(&record.policy).ok()?.network?;
    let (frame, all) = taken_apart(&record.policy)?;
    let text: RecordedText = frame.around([]).into();
    let rest = Rest { before: frame.before.len(), record: Record { policy: text, ..record.clone() } };
    let rest = serde_json::to_vec(&rest).ok()?;
    let record_path = file(&record.key);
    let own = FileId::at(&record_path).ok()?;
    let head = Head {
        record: own,
        rest_bytes: rest.len() as u64,
        subscribers: all.len() as u64,
        sites: network.sites.sites.len() as u64,
        generation: record.generation.into(),
        amendments_bytes: Amendments::of(&record_path, own).length_bytes(),
        history: history::known(&record.key).unwrap_or_default(),
    };
    let mut table = Vec::with_capacity(all.len());
    let mut at = head.rest_at() + head.rest_bytes;
    let mut texts = Vec::new();
    for (key, text) in &all {
        table.push([owner_of_subscriber(key), at, text.len() as u64]);
        texts.extend_from_slice(text.as_bytes());
        at += text.len() as u64;
    }
    table.sort_unstable();
    // The tree has a leaf for each hash.
    if table.windows(2).any(|two| two[0][0] == two[1][0]) {
        return None;
    }
    let words = head.words().into_iter().chain(words_of(&network.guarantees(), network.sites.sites.len()));
    let mut bytes: Vec<u8> = words.chain(table.into_iter().flatten()).flat_map(u64::to_le_bytes).collect();
    bytes.extend(rest);
    bytes.extend(texts);
    Some(bytes)
}

fn file_words(file: FileId) -> [u64; 3] {
    let FileId { inode, modified_ns, length_bytes } = file;
    [inode, modified_ns, length_bytes]
}

fn write_whole(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(bytes)
}

fn read_words(file: &File, first: usize, words: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; 8 * words];
    file.read_exact_at(&mut bytes, 8 * first as u64)?;
    Ok(bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect())
}

fn write_words(file: &File, first: usize, words: &[u64]) -> io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.write_all_at(&bytes, 8 * first as u64)
}

fn words_of(guarantees: &Guarantees, sites: usize) -> Vec<u64> {
    let of_site = |site| guarantees.sites.get(site).copied().unwrap_or_default();
    let all = std::iter::once(guarantees.link).chain((0..sites).map(of_site));
    all.flat_map(|sum| [sum.down, sum.up]).flat_map(|sum| [sum as u64, (sum >> 64) as u64]).collect()
}

fn sums_of(words: &[u64]) -> Guarantees {
    let whole = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
    let mut all = words.chunks_exact(SUM_WORDS).map(|sum| EachWay { down: whole(&sum[..2]), up: whole(&sum[2..]) });
    Guarantees { link: all.next().unwrap_or_default(), sites: all.collect() }
}
