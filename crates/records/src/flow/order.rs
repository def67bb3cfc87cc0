//! A list of places by age: the one that was touched longest ago is first. Each step takes the same time however long the list is.

const NONE: u32 = u32::MAX;

/// Neighbours of a place in its list.
#[derive(Debug, Clone, Copy)]
pub struct Links {
    older: u32,
    newer: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links { older: NONE, newer: NONE }
    }
}

/// A list over places, whose links the owner of the places keeps.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    oldest: u32,
    newest: u32,
}

impl Default for Order {
    fn default() -> Order {
        Order { oldest: NONE, newest: NONE }
    }
}

impl Order {
    /// The oldest place.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Puts a place that is in no list at the new end.
    pub fn push(&mut self, place: u32, links: &mut [Links]) {
        links[place as usize] = Links { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = place,
            newest => links[newest as usize].newer = place,
        }
        self.newest = place;
    }

    /// Takes a place of this list out of it.
    pub fn remove(&mut self, place: u32, links: &mut [Links]) {
        let Links { older, newer } = std::mem::take(&mut links[place as usize]);
        match older {
            NONE => self.oldest = newer,
            older => links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => links[newer as usize].older = older,
        }
    }

    /// Gives the links of a place of this list to another place that is in no list.
    pub fn rename(&mut self, from: u32, to: u32, links: &mut [Links]) {
        let moved = std::mem::take(&mut links[from as usize]);
        match moved.older {
            NONE => self.oldest = to,
            older => links[older as usize].newer = to,
        }
        match moved.newer {
            NONE => self.newest = to,
            newer => links[newer as usize].older = to,
        }
        links[to as usize] = moved;
    }
}
