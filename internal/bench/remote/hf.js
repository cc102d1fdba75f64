// SPDX-License-Identifier: Apache-2.0
// The process of StartHF: requests on standard input, replies on standard output, one JSON document a line.
'use strict'
const hf = require(process.argv[1])
const plain = { addSpecialTokens: false }
const texts = new Map() // name -> {docs, ids}
let tok = null

function cpu() {
  const u = process.cpuUsage()
  return u.user + u.system
}

// ids encodes one document; the ids leave Rust here and only here.
async function ids(s, options) {
  return (await tok.encode(s, null, options)).getIds()
}

async function full(s) {
  try {
    const e = await tok.encode(s, null, plain)
    const a = e.getIds()
    return {
      ids: a, framed: await ids(s, { addSpecialTokens: true }), offsets: e.getOffsets().flat(),
      dec: await tok.decode(a, false), skip: await tok.decode(a, true),
    }
  } catch (err) {
    return { error: String(err) }
  }
}

async function serve(r) {
  let tokens = 0
  switch (r.op) {
    case 'load': {
      global.gc()
      const t = cpu()
      tok = hf.Tokenizer.fromFile(r.file)
      const cost = cpu() - t
      await ids('a 1', plain) // expressions are compiled when they are first used, which is no part of encoding
      return { cpu_us: cost }
    }
    case 'text':
      texts.set(r.name, { docs: r.docs })
      return {}
    case 'encode': {
      const { docs } = texts.get(r.name)
      global.gc()
      const t = cpu()
      for (let i = 0; i < r.reps; i++) {
        if (r.way === 'batch') {
          for (const e of await tok.encodeBatch(docs, plain)) tokens += e.getLength()
        } else {
          for (const s of docs) tokens += (await tok.encode(s, null, plain)).getLength()
        }
      }
      return { cpu_us: cpu() - t, tokens }
    }
    case 'decode': { // way "none": ids that no vocabulary has, so that only the call and its numbers cost
      const text = texts.get(r.name)
      let list = []
      for (const s of text.docs) list.push(await ids(s, plain))
      if (r.way === 'none') list = list.map(a => a.map(() => 0x7fffffff))
      for (const a of list) tokens += a.length
      global.gc()
      const t = cpu()
      for (let i = 0; i < r.reps; i++) for (const a of list) await tok.decode(a, true)
      return { cpu_us: cpu() - t, tokens: tokens * r.reps }
    }
    case 'idle': {
      const t = cpu()
      for (let i = 0; i < r.reps; i++) await tok.encode('', null, plain)
      return { cpu_us: cpu() - t }
    }
    case 'ids': {
      const list = []
      for (const s of r.docs) list.push(await ids(s, plain))
      return { ids: list }
    }
    case 'text of': {
      const list = []
      for (const a of r.lists) list.push(await tok.decode(a, !!r.skip))
      return { texts: list }
    }
    case 'full': {
      const list = []
      for (const s of r.docs) list.push(await full(s))
      return { full: list }
    }
  }
  throw new Error('unknown op ' + r.op)
}

async function main() {
  for await (const line of require('readline').createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    let reply
    try {
      reply = await serve(JSON.parse(line))
    } catch (err) {
      reply = { error: String(err && err.message || err) }
    }
    process.stdout.write(JSON.stringify(reply) + '\n')
  }
}
main()
