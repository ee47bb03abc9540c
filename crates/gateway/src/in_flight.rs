//! The memory of what is under way: counted as it comes, alone, by tenant and together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_engine::TenantId;

use crate::config::Limits;

/// All that is under way has no room for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// The memory that all bodies together may take.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    used: Arc<AtomicUsize>,
    most: usize,
    /// The bytes of each tenant that has any.
    tenants: Arc<Mutex<HashMap<TenantId, usize>>>,
    most_of_tenant: usize,
}

/// A share of it, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct BodyShare {
    all: InFlight,
    tenant: TenantId,
    bytes: usize,
}

impl InFlight {
    /// Makes the memory; a tenant has a part of it where there are several `keys`.
    pub(crate) fn new(limits: &Limits, keys: usize) -> Self {
        let most = limits.in_flight_bytes;
        let most_of_tenant = if keys > 1 { limits.tenant_bytes } else { most };
        Self { used: Arc::default(), most, tenants: Arc::default(), most_of_tenant }
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes the memory for so many bytes of everybody.
    pub(crate) fn of(most: usize) -> Self {
        Self { used: Arc::default(), most, tenants: Arc::default(), most_of_tenant: most }
    }

    /// Returns an empty share of a tenant.
    pub(crate) fn share(&self, tenant: &TenantId) -> BodyShare {
        BodyShare { all: self.clone(), tenant: tenant.clone(), bytes: 0 }
    }

    /// Adds bytes of a tenant; false where that is more than it may have.
    fn add(&self, tenant: &TenantId, more: usize) -> bool {
        if self.most_of_tenant >= self.most {
            return true;
        }
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let used = tenants.get(tenant).copied().unwrap_or(0);
        let Some(sum) = used.checked_add(more).filter(|sum| *sum <= self.most_of_tenant) else {
            return false;
        };
        tenants.insert(tenant.clone(), sum);
        true
    }

    fn give_back(&self, tenant: &TenantId, bytes: usize) {
        if self.most_of_tenant >= self.most {
            return;
        }
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = tenants.get_mut(tenant) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                tenants.remove(tenant);
            }
        }
    }
}

impl BodyShare {
    /// Returns the bytes that the share has.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes sure that the share has so many bytes; at once, for a queue would only hide that there is no room.
    pub(crate) fn reach(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        if !self.all.add(&self.tenant, more) {
            return Err(NoRoom);
        }
        let most = self.all.most;
        let grown = self.all.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            used.checked_add(more).filter(|sum| *sum <= most)
        });
        if grown.is_err() {
            self.all.give_back(&self.tenant, more);
            return Err(NoRoom);
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.all.used.fetch_sub(self.bytes, Ordering::AcqRel);
        self.all.give_back(&self.tenant, self.bytes);
    }
}
