//! Subscribers of the policies in force: read, and changed on all interfaces of a network namespace or on none.

pub(super) mod in_place;

use crate::command::apply::{Edit, Preview, apply_edits_locked, preview_edits, ready_to_change};
use crate::command::change::Done;
use crate::command::recover::recover_unless_held;
use crate::engine::managed::managed;
use crate::record::subscriber_index::SubscriberIndex;
use crate::record::{Phase, Record};
use crate::status::{Pinned, SubscriberStatus};
use crate::system::netns;
use crate::system::privilege::require_root;
use sluice_error::{Error, Result};
use sluice_policy::edit::{SubscriberChange, SubscriberEditError, with_subscribers as edited};
use sluice_policy::{Policy, Source, parse};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The subscribers of a managed interface that are wanted, in the order of the policy.
///
/// # Errors
/// The policy has none.
pub fn subscribers_of(interface: &str, wanted: impl Fn(&SubscriberStatus) -> bool) -> Result<Vec<SubscriberStatus>> {
    require_root()?;
    recover_unless_held()?;
    let pinned = Pinned::open(managed(interface)?)?;
    let tree = pinned.tree()?.filter(|tree| !tree.is_class_tree()).ok_or_else(|| without_subscribers(interface))?;
    Ok(tree.subscribers(wanted))
}

/// The error of an interface whose policy has no subscribers.
pub fn without_subscribers(interface: &str) -> Error {
    Error::input(format!("{interface}: the policy has no subscribers"))
        .help("`sluice status` shows what each interface has")
}

/// The interfaces of the process's namespace whose policies have subscribers.
///
/// # Errors
/// There are none.
pub fn with_subscribers() -> Result<Vec<String>> {
    let own = netns::inode()?;
    let here =
        Record::all()?.into_iter().filter(|record| record.netns == own && record.way.is_some() && !record.class_tree);
    let names: Vec<String> =
        here.filter(|record| record.phase == Phase::Active).map(|record| record.interface).collect();
    if names.is_empty() {
        return Err(Error::input("no managed interface has a policy with subscribers")
            .help("write a policy with \"subscribers\" (docs/policy.md), then `sluice up IFACE --policy P`"));
    }
    Ok(names)
}

/// The error of a key that no subscriber has.
pub fn no_subscriber(name: &str) -> Error {
    Error::input(format!("there is no subscriber \"{}\"", name.escape_debug()))
        .help(
            "`sluice subscriber list --search TEXT` finds keys by name, site, plan or address; `--interface` changes one interface alone, \
             where they differ; the hosts of a group have what the policy says of the group",
        )
}

/// Changes of subscribers, to be made together.
#[derive(Debug, Clone)]
pub struct SubscriberEdits {
    /// The changes, one after the other.
    pub changes: Vec<SubscriberChange>,
    /// The interfaces whose policies are changed, all of them or none. Empty: those of the namespace that have subscribers.
    pub interfaces: Vec<String>,
    /// `--confirm`: time that they stay in force unless they are confirmed.
    pub confirm: Option<Duration>,
    /// Reason, for the history.
    pub message: String,
}

impl SubscriberEdits {
    fn interfaces(&self) -> Result<Vec<String>> {
        if self.interfaces.is_empty() { with_subscribers() } else { Ok(self.interfaces.clone()) }
    }

    /// Writes the indices that the interfaces lack, as they do after a change of the whole policy. Whether there were any.
    fn write_indices(&self) -> Result<bool> {
        let mut any = false;
        for interface in &self.interfaces()? {
            let record = managed(interface)?;
            if record.unconfirmed.is_none() && SubscriberIndex::open(&record.key).is_none() {
                SubscriberIndex::write(&record);
                any = true;
            }
        }
        Ok(any)
    }

    /// The interfaces with the texts of their policies, edited. Those with the same policy share one.
    fn texts(&self) -> Result<Vec<(Record, Rc<str>)>> {
        let interfaces = self.interfaces()?;
        let mut all: Vec<(Record, Rc<str>)> = Vec::new();
        for interface in &interfaces {
            let record = managed(interface)?;
            let known = all.last().filter(|(last, _)| last.policy == record.policy).map(|(_, text)| Rc::clone(text));
            let text = known.map_or_else(|| self.edited(&record.policy), Ok);
            all.push((record, text.map_err(|error| error.of_several(interface, interfaces.len()))?));
        }
        Ok(all)
    }

    fn edited(&self, text: &str) -> Result<Rc<str>> {
        edited(text, &self.changes).map(Rc::from).map_err(|error| match error {
            SubscriberEditError::NotThere(name) => no_subscriber(&name),
            SubscriberEditError::There(_) => Error::input(error.to_string())
                .help("choose another key, or change that one with `sluice subscriber set`"),
            SubscriberEditError::NoList => Error::input(error.to_string())
                .help("`sluice status` shows which interfaces have subscribers: name one of them"),
        })
    }

    /// Does the work with an edit of each interface. Those with the same text share its policy.
    fn with<T>(&self, texts: &[(Record, Rc<str>)], work: impl FnOnce(&[Edit<'_>]) -> Result<T>) -> Result<T> {
        let last: RefCell<Option<(Rc<str>, Policy)>> = RefCell::new(None);
        let policy = |text: &Rc<str>| {
            if let Some((_, policy)) = last.borrow().as_ref().filter(|(known, _)| Rc::ptr_eq(known, text)) {
                return Ok(policy.clone());
            }
            let policy = parse(&Source::new("the policy in force, edited", &**text))
                .map_err(|errors| Error::input(errors.to_string().trim_end()))?;
            last.replace(Some((Rc::clone(text), policy.clone())));
            Ok(policy)
        };
        let policy = &policy;
        let edits: Vec<_> = texts.iter().map(|(_, text)| move |_: &str| policy(text)).collect();
        let edits: Vec<Edit<'_>> = texts
            .iter()
            .zip(&edits)
            .map(|((record, _), edit)| Edit {
                interface: &record.interface,
                edit,
                confirm: self.confirm,
                message: Some(self.message.clone()),
                // Each change names its subscriber.
                force: true,
            })
            .collect();
        work(&edits)
    }

    /// Makes the changes on all of the interfaces, or on none; plan, site and rates are changed in place. Where all of them have what is asked for, and no
    /// change waits to be confirmed, nothing is done: a billing system may tell the plan of a subscriber again and again.
    pub fn apply(&self) -> Result<Vec<Done>> {
        if let Some(done) = in_place::apply(self)? {
            return Ok(done);
        }
        let _lock = ready_to_change()?;
        if in_place::is_meant(self) && self.write_indices()? {
            if let Some(done) = in_place::apply_locked(self)? {
                return Ok(done);
            }
        }
        let texts = self.texts()?;
        let is_same = |(record, text): &(Record, Rc<str>)| record.unconfirmed.is_none() && **text == *record.policy;
        if self.confirm.is_none() && texts.iter().all(is_same) {
            let lack = texts.iter().filter(|(record, _)| SubscriberIndex::open(&record.key).is_none());
            lack.for_each(|(record, _)| SubscriberIndex::write(record));
            return Ok(texts.into_iter().map(|(record, _)| Done::nothing(record)).collect());
        }
        let done = self.with(&texts, apply_edits_locked)?;
        done.iter().for_each(|done| SubscriberIndex::write(&done.record));
        Ok(done)
    }

    /// The differences that the changes would make. Changes nothing.
    pub fn preview(&self) -> Result<Vec<Preview>> {
        self.with(&self.texts()?, preview_edits)
    }
}
