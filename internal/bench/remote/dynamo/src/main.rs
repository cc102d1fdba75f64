// SPDX-License-Identifier: Apache-2.0

//! Plays workloads (files in the format of examples/kvbench/kvw) through the indexes of Dynamo's crate: the compressed radix tree
//! for one thread, and the concurrent one. Package remote describes the requests.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use dynamo_kv_router::indexer::{SyncIndexer, WorkerTask};
use dynamo_kv_router::protocols::*;
use dynamo_kv_router::{ConcurrentRadixTreeCompressed, RadixTree};
use serde_json::{Value, json};

/// A run of block ids that go up or down by one.
struct Run {
    first: u32,
    length: u32,
    down: bool,
}

enum Op {
    Query(Vec<Run>),
    Event(RouterEvent, usize),
}

struct Workload {
    ops: Vec<Op>,
    local: Vec<u64>,
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8> {
        let b = *self.data.get(self.at).context("the file ends inside an operation")?;
        self.at += 1;
        Ok(b)
    }

    fn uvarint(&mut self) -> Result<u64> {
        let mut v = 0;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            v |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return Ok(v);
            }
        }
        bail!("a number of more than 64 bits")
    }

    fn list(&mut self) -> Result<Vec<Run>> {
        let mut last = 0i64;
        (0..self.uvarint()?)
            .map(|_| {
                let delta = self.uvarint()?;
                let first = last + ((delta >> 1) as i64 ^ -((delta & 1) as i64));
                let v = self.uvarint()?;
                let (length, down) = ((v >> 1) as u32, v & 1 == 1);
                let rest = i64::from(length) - 1;
                last = if down { first - rest } else { first + rest };
                Ok(Run { first: first as u32, length, down })
            })
            .collect()
    }
}

fn ids(runs: &[Run]) -> impl Iterator<Item = u32> + '_ {
    runs.iter().flat_map(|r| (0..r.length).map(move |i| if r.down { r.first - i } else { r.first + i }))
}

/// The local hash of a block: the output of splitmix64 for a state made of its id.
fn local_hash(id: u32) -> u64 {
    const G: u64 = 0x9e3779b97f4a7c15;
    let mut z = u64::from(id).wrapping_mul(G).wrapping_add(G);
    z = (z ^ z >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d049bb133111eb);
    z ^ z >> 31
}

fn read(data: &[u8]) -> Result<Workload> {
    let end = data.iter().position(|&b| b == b'\n').context("no header line")?;
    let header: Value = serde_json::from_slice(data[..end].strip_prefix(b"KVW1 ").context("not a workload")?)?;
    let most = header["max_u"].as_u64().context("max_u")? as usize;
    let mut r = Reader { data, at: end + 1 };
    let mut w = Workload { ops: Vec::new(), local: (0..=most as u32).map(local_hash).collect() };
    let mut seq = vec![0u64; most + 1]; // 0: not seen
    while r.at < data.len() {
        let kind = r.byte()?;
        let (mut worker, mut parent) = (0, None);
        if kind > 0 {
            worker = r.uvarint()?;
        }
        if kind == 1 {
            parent = (r.uvarint()? as u32).checked_sub(1);
        }
        let runs = r.list()?;
        let parent_hash = parent.map(|p| ExternalSequenceBlockHash(seq[p as usize]));
        if kind < 2 {
            for id in ids(&runs) {
                let at = id as usize;
                if seq[at] == 0 {
                    seq[at] = match parent {
                        None => w.local[at],
                        Some(p) => {
                            let mut both = [0; 16];
                            both[..8].copy_from_slice(&seq[p as usize].to_le_bytes());
                            both[8..].copy_from_slice(&w.local[at].to_le_bytes());
                            xxhash_rust::xxh3::xxh3_64_with_seed(&both, 1337)
                        }
                    };
                }
                parent = Some(id);
            }
        }
        let hash = |id| ExternalSequenceBlockHash(seq[id as usize]);
        let data = match kind {
            0 => {
                w.ops.push(Op::Query(runs));
                continue;
            }
            1 => KvCacheEventData::Stored(KvCacheStoreData {
                parent_hash,
                start_position: None,
                blocks: ids(&runs)
                    .map(|id| KvCacheStoredBlockData {
                        block_hash: hash(id),
                        tokens_hash: LocalBlockHash(w.local[id as usize]),
                        mm_extra_info: None,
                    })
                    .collect(),
            }),
            2 => KvCacheEventData::Removed(KvCacheRemoveData { block_hashes: ids(&runs).map(hash).collect() }),
            _ => bail!("operation of kind {kind}"),
        };
        let event = KvCacheEvent { event_id: w.ops.len() as u64, data, dp_rank: 0 };
        let blocks = runs.iter().map(|r| r.length as usize).sum();
        w.ops.push(Op::Event(RouterEvent::new(worker, event), blocks));
    }
    Ok(w)
}

impl Workload {
    fn prompt(&self, runs: &[Run], to: &mut Vec<LocalBlockHash>) {
        to.clear();
        to.extend(ids(runs).map(|id| LocalBlockHash(self.local[id as usize])));
    }

    /// Copies of all events, made before the clock starts: an index consumes them.
    fn events(&self) -> Vec<RouterEvent> {
        self.ops.iter().filter_map(|op| if let Op::Event(e, _) = op { Some(e.clone()) } else { None }).collect()
    }

    fn blocks(&self) -> usize {
        self.ops.iter().map(|op| if let Op::Event(_, n) = op { *n } else { 0 }).sum()
    }
}

/// The CPU time of this thread, in nanoseconds.
fn cpu() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to t, which outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn sum(scores: &OverlapScores) -> u64 {
    scores.scores.values().map(|&n| u64::from(n)).sum()
}

/// Applies all events alone and returns the CPU time in nanoseconds.
fn events(index: &str, w: &Workload) -> Result<u64> {
    let events = w.events();
    if index == "radix" {
        let mut tree = RadixTree::new();
        let start = cpu();
        for e in events {
            tree.apply_event(e)?;
        }
        return Ok(cpu() - start);
    }
    // The events wait in the queue, so that the time is that of the thread that applies them.
    let tree = ConcurrentRadixTreeCompressed::new();
    let (tx, rx) = flume::unbounded();
    for e in events {
        tx.send(WorkerTask::Event(e)).ok().context("closed")?;
    }
    drop(tx);
    let start = cpu();
    tree.worker(rx, None)?;
    Ok(cpu() - start)
}

/// Plays the whole file and returns for every query the sum of the depths and the nanoseconds.
fn queries(index: &str, w: &Workload) -> Result<(Vec<u64>, Vec<u64>)> {
    let (mut sums, mut times, mut prompt) = (Vec::new(), Vec::new(), Vec::new());
    let mut ask = |f: &mut dyn FnMut() -> OverlapScores| {
        let start = Instant::now();
        let scores = f();
        times.push(start.elapsed().as_nanos() as u64);
        sums.push(sum(&scores));
    };
    if index == "radix" {
        let mut tree = RadixTree::new();
        for op in &w.ops {
            match op {
                Op::Event(e, _) => tree.apply_event(e.clone())?,
                Op::Query(runs) => {
                    w.prompt(runs, &mut prompt);
                    let p = prompt.clone();
                    let mut p = Some(p);
                    ask(&mut || tree.find_matches(p.take().unwrap_or_default(), false));
                }
            }
        }
        return Ok((sums, times));
    }
    let tree = Arc::new(ConcurrentRadixTreeCompressed::new());
    let (tx, rx) = flume::unbounded();
    let thread = std::thread::spawn({
        let tree = tree.clone();
        move || tree.worker(rx, None)
    });
    let mut applied = None;
    for op in &w.ops {
        match op {
            Op::Event(e, _) => {
                let (resp, done) = tokio::sync::oneshot::channel();
                tx.send(WorkerTask::EventWithAck { event: e.clone(), resp }).ok().context("closed")?;
                applied = Some(done);
            }
            Op::Query(runs) => {
                w.prompt(runs, &mut prompt);
                if let Some(done) = applied.take() {
                    done.blocking_recv()?;
                }
                ask(&mut || tree.find_matches(&prompt, false));
            }
        }
    }
    drop(tx);
    thread.join().ok().context("the thread of events panicked")??;
    Ok((sums, times))
}

fn reply(request: &Value, workload: &mut Option<Workload>) -> Result<Value> {
    let text = |name: &str| request[name].as_str().with_context(|| format!("no {name}"));
    if text("op")? == "load" {
        *workload = Some(read(&std::fs::read(text("file")?)?)?);
        return Ok(json!({}));
    }
    let w = workload.as_ref().context("no workload is loaded")?;
    match text("op")? {
        "events" => Ok(json!({"ns": events(text("name")?, w)?, "blocks": w.blocks()})),
        "queries" => {
            let (sums, times) = queries(text("name")?, w)?;
            Ok(json!({"sums": sums, "times": times}))
        }
        op => bail!("unknown operation {op}"),
    }
}

fn main() -> Result<()> {
    let mut workload = None;
    for line in std::io::stdin().lock().lines() {
        let answer = serde_json::from_str(&line?)
            .map_err(Into::into)
            .and_then(|request| reply(&request, &mut workload))
            .unwrap_or_else(|e: anyhow::Error| json!({"error": format!("{e:#}")}));
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
