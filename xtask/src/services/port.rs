//! Free ports, below the range that the system gives to outgoing connections.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

const FIRST: u16 = 15_000;
const COUNT: u16 = 7_000;
/// Nodes of a Redis Cluster talk to each other on their port plus this.
const BUS: u16 = 10_000;

/// Finds free ports, each with a free cluster bus port.
pub(super) fn free(count: usize) -> Result<Vec<u16>> {
    // All stay bound until all are found, so that none is given twice.
    let mut bound = Vec::new();
    let mut ports = Vec::new();
    let offset = offset();
    for step in 0..COUNT {
        if ports.len() == count {
            break;
        }
        let port = FIRST + (offset + step) % COUNT;
        if let (Ok(clients), Ok(nodes)) = (bind(port), bind(port + BUS)) {
            bound.push((clients, nodes));
            ports.push(port);
        }
    }
    if ports.len() < count {
        bail!("there are no {count} free ports from {FIRST} on");
    }
    Ok(ports)
}

fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// Where to begin: different for two runs at the same time.
fn offset() -> u16 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_micros());
    let mixed = now ^ process::id().wrapping_mul(7_919);
    u16::try_from(mixed % u32::from(COUNT)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_distinct_and_a_port_in_use_is_not_given() {
        let held = free(1).unwrap()[0];
        let _listener = bind(held).unwrap();
        let mut ports = free(200).unwrap();
        assert!(!ports.contains(&held));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 200);
    }
}
