//! Subscribers of the policies in force: read, and changed on all interfaces of a network namespace or on none.

use crate::command::apply::{Edit, Preview, apply_edits_locked, preview_edits, ready_to_change};
use crate::command::change::Done;
use crate::command::recover::recover_unless_held;
use crate::engine::managed::managed;
use crate::record::{Phase, Record};
use crate::status::{Pinned, SubscriberStatus};
use crate::system::netns;
use crate::system::privilege::require_root;
use sluice_error::{Error, Result};
use sluice_policy::edit::{SubscriberChange, SubscriberEditError, with_subscribers as edited};
use sluice_policy::{Policy, Source, parse};
use std::cell::RefCell;
use std::time::Duration;

/// The subscribers of a managed interface that are wanted, in the order of the policy.
///
/// # Errors
/// The policy has none.
pub fn subscribers_of(interface: &str, wanted: impl Fn(&SubscriberStatus) -> bool) -> Result<Vec<SubscriberStatus>> {
    require_root()?;
    recover_unless_held()?;
    let pinned = Pinned::open(managed(interface)?)?;
    let tree = pinned.tree()?.ok_or_else(|| without_subscribers(interface))?;
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
    let here = Record::all()?.into_iter().filter(|record| record.netns == own && record.way.is_some());
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
    fn policy(&self, text: &str) -> Result<Policy> {
        let edited = edited(text, &self.changes).map_err(|error| match error {
            SubscriberEditError::NotThere(name) => no_subscriber(&name),
            SubscriberEditError::There(_) => Error::input(error.to_string())
                .help("choose another key, or change that one with `sluice subscriber set`"),
            SubscriberEditError::NoList => Error::input(error.to_string())
                .help("`sluice status` shows which interfaces have subscribers: name one of them"),
        })?;
        parse(&Source::new("the policy in force, edited", edited))
            .map_err(|errors| Error::input(errors.to_string().trim_end()))
    }

    /// Does the work with an edit of each interface. Those with the same policy share the edited one.
    fn with<T>(&self, work: impl FnOnce(&[Edit<'_>]) -> Result<T>) -> Result<T> {
        let last: RefCell<Option<(String, Policy)>> = RefCell::new(None);
        let edit = |text: &str| {
            if let Some((_, policy)) = last.borrow().as_ref().filter(|(known, _)| known == text) {
                return Ok(policy.clone());
            }
            let policy = self.policy(text)?;
            last.replace(Some((text.to_owned(), policy.clone())));
            Ok(policy)
        };
        let interfaces = self.interfaces()?;
        let edits: Vec<Edit<'_>> = interfaces
            .iter()
            .map(|interface| Edit {
                interface,
                edit: &edit,
                confirm: self.confirm,
                message: Some(self.message.clone()),
                // Each change names its subscriber.
                force: true,
            })
            .collect();
        work(&edits)
    }

    /// Makes the changes on all of the interfaces, or on none. Where all of them have what is asked for, nothing is done: a billing system may tell
    /// the plan of a subscriber again and again.
    pub fn apply(&self) -> Result<Vec<Done>> {
        let _lock = ready_to_change()?;
        match self.unchanged()? {
            Some(records) => Ok(records.into_iter().map(Done::nothing).collect()),
            None => self.with(apply_edits_locked),
        }
    }

    /// The interfaces, if the changes make no difference to any of them and no change of them waits to be confirmed.
    fn unchanged(&self) -> Result<Option<Vec<Record>>> {
        let records: Vec<Record> =
            self.interfaces()?.iter().map(|interface| managed(interface)).collect::<Result<_>>()?;
        let is_same = |record: &Record| {
            record.unconfirmed.is_none()
                && edited(&record.policy, &self.changes).is_ok_and(|text| text == record.policy)
        };
        Ok((self.confirm.is_none() && records.iter().all(is_same)).then_some(records))
    }

    fn interfaces(&self) -> Result<Vec<String>> {
        if self.interfaces.is_empty() { with_subscribers() } else { Ok(self.interfaces.clone()) }
    }

    /// The differences that the changes would make. Changes nothing.
    pub fn preview(&self) -> Result<Vec<Preview>> {
        self.with(preview_edits)
    }
}
