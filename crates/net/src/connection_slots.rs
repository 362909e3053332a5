//! A fixed-size table of connections. Generations invalidate the identifiers of removed connections.

use crate::driver::Conn;

/// A table of slots. Nothing is allocated after [`Slots::new`]; memory becomes resident on first use of a slot.
pub(crate) struct Slots<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    count: usize,
}

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub(crate) fn new(count: usize) -> Self {
        assert!(u32::try_from(count).is_ok(), "the backend checks its limit");
        Self { entries: Vec::with_capacity(count), free: Vec::with_capacity(count), count }
    }

    pub(crate) fn insert(&mut self, value: T) -> Result<Conn, T> {
        if self.is_full() {
            return Err(value);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, value: None });
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[slot as usize];
        entry.value = Some(value);
        Ok(Conn { slot, generation: entry.generation })
    }

    pub(crate) fn get_mut(&mut self, conn: Conn) -> Option<&mut T> {
        let entry = self.entries.get_mut(conn.slot as usize)?;
        if entry.generation == conn.generation { entry.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, conn: Conn) -> Option<T> {
        let entry = self.entries.get_mut(conn.slot as usize).filter(|entry| entry.generation == conn.generation)?;
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(conn.slot);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_invalidates_identifier() {
        let mut slots = Slots::new(1);
        let first = slots.insert("first").unwrap();
        assert_eq!(slots.insert("too many"), Err("too many"));
        assert_eq!(slots.remove(first), Some("first"));
        let second = slots.insert("second").unwrap();
        assert_eq!(first.index(), second.index());
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut "second"));
        assert!(slots.is_full());
        slots.remove(second);
        assert!(slots.is_empty());
    }
}
