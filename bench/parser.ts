/**
 * The block parser against its peers, in CPU time and as ratios.
 *
 * - the fold against htmlparser2's `Parser`, fed the same pieces, both finding every block
 * - the fold in a Stream against the bare fold
 * - 10 MB against 1 MB, and hostile texts against the time they may take
 *
 * Every ratio is the median of rounds in which both sides run in turns. `node bench/parser.ts`, after `npm ci` in bench/.
 */
import { Cause, Effect, Stream } from "effect"
import { fileURLToPath } from "node:url"
import * as BlockParser from "../src/BlockParser.ts"
import { cpu, median, type Row } from "./support.ts"

// ---------------------------------------------------------------- texts

const megabyte = 1_000_000
const mebibyte = 1024 * 1024

const prose =
  "The quick brown fox jumps over the lazy dog, as it has done so many times before in texts like this one. " +
  "Prices are fine when 3 < 5 and 7 > 2; naïve café, déjà vu. 😀\n\n"
const code = [
  "```ts",
  "const names: Array<string> = []",
  "for (let i = 0; i < names.length; i++) if (names[i] !== '') console.log(`<li>${names[i]}</li>`)",
  "```",
  ""
].join("\n")
const query = '{"query": "what is a fiber", "limit": 10, "filters": {"lang": "en", "tags": ["effect", "runtime"]}}'

const realistic = [
  prose,
  prose,
  `<block type="command" name="search">${query}</block>\n`,
  prose,
  `<block type="json">{"items": [1, 2, 3], "text": ${JSON.stringify(prose)}}</block>\n`,
  code,
  '<block type="plan">First <block type="command" name="read">{}</block>, then answer.</block>\n',
  `<final>${(prose + code).repeat(4)}</final>\n`
].join("")

/** A text of any size: one unit again and again, in a frame. */
interface Shape {
  readonly open?: string
  readonly unit: string
  readonly close?: string
}

const repeat = (unit: string, size: number) => unit.repeat(Math.ceil(size / unit.length))

const make = ({ close = "", open = "", unit }: Shape, size: number) => open + repeat(unit, size) + close

const inBlock = (unit: string): Shape => ({ open: '<block type="a">', unit, close: "</block>" })

/** Texts in which both parsers find the same blocks. */
const shared: Readonly<Record<string, Shape>> = {
  realistic: { unit: realistic },
  "no block": { unit: prose },
  "one block": inBlock(prose),
  "small blocks": { unit: '<block type="command" name="a">x</block>' },
  "nested blocks": { unit: `<block type="a">${'<block type="b">x '.repeat(9)}${"</block>".repeat(10)}` },
  "angles outside": { unit: "a < b && c << 2; i<10 <= y " },
  "angles inside": inBlock("a < b && c << 2; i<10 <= y "),
  markup: { unit: '<div class="a"><p>Hello<br/>there</p></div> ' }
}

/** Texts made to hurt this parser (S-12). */
const hostile: Readonly<Record<string, Shape>> = {
  "<block ": { unit: "<block " },
  "<": { unit: "<" },
  '"': { unit: '"' },
  "</block": { unit: "</block" },
  "white space in a tag": { open: "<block", unit: " " },
  "quotes in quotes": { unit: '<block type="<block type=' },
  "refused tags": { unit: '<block type="a" id="b">x</block> <final name=c> ' },
  "< in a block": inBlock("<"),
  "</block in a block": inBlock("</block"),
  nesting: inBlock("<block >x</block>")
}

/** Pieces as a decoder gives them: strings of their own, not slices of one. */
const cut = (text: string, size: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let at = 0; at < text.length; at += size) {
    const piece: string = JSON.parse(JSON.stringify(text.slice(at, at + size)))
    pieces.push(piece)
  }
  return pieces
}

// ---------------------------------------------------------------- contenders

/** How many blocks were found, and how much was in them, so that no work can be left out. */
interface Found {
  blocks: number
  length: number
}

const fold = (pieces: ReadonlyArray<string>): Found => foldTexts({ unit: "" }, pieces, 1, 1)

/** Reads so many texts one after the other; each has the pieces so many times in a row, in the frame of its shape. */
const foldTexts = (
  { close = "", open = "" }: Shape,
  pieces: ReadonlyArray<string>,
  texts: number,
  times: number
): Found => {
  const found = { blocks: 0, length: 0 }
  const parser = BlockParser.make({ replyLength: Infinity })
  for (let text = 0; text < texts; text++) {
    count(parser.push(open), found)
    for (let time = 0; time < times; time++) feed(parser, pieces, found)
    count(parser.push(close), found)
    count(parser.flush(), found)
  }
  return found
}

const feed = (parser: BlockParser.BlockParser, pieces: ReadonlyArray<string>, found: Found) => {
  for (let i = 0; i < pieces.length; i++) count(parser.push(pieces[i] ?? ""), found)
}

const count = (parts: ReadonlyArray<BlockParser.Part>, found: Found) => {
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]
    if (part?.type !== "block_complete") continue
    found.blocks += 1
    found.length += part.block.content.length
  }
}

/** As much of htmlparser2 as is used here, so that this file compiles without it. */
interface Peer {
  readonly Parser: new (
    handler: {
      readonly onopentag: (name: string) => void
      readonly ontext: (text: string) => void
      readonly onclosetag: (name: string) => void
    },
    options: { readonly xmlMode: boolean; readonly decodeEntities: boolean }
  ) => { readonly write: (piece: string) => void; readonly end: () => void }
}

const loadPeer = async (name: string): Promise<Peer> => {
  const peer: Peer = await import(name)
  return peer
}

const core = new Set(["command", "json", "final", "plan", "result", "error"])

/** htmlparser2 with the settings that are its fastest, and nearest to the block grammar. */
const peerFold =
  ({ Parser }: Peer) =>
  (pieces: ReadonlyArray<string>): Found => {
    const found = { blocks: 0, length: 0 }
    let open = ""
    let level = 0
    let content = ""
    const parser = new Parser(
      {
        onopentag: (name) => {
          if (level === 0 && (name === "block" || core.has(name))) {
            open = name
            level = 1
            content = ""
          } else if (name === open && name === "block") {
            level += 1
          }
        },
        ontext: (text) => {
          if (level > 0) content += text
        },
        onclosetag: (name) => {
          if (level === 0 || name !== open || --level > 0) return
          found.blocks += 1
          found.length += content.length
        }
      },
      { xmlMode: true, decodeEntities: false }
    )
    for (let i = 0; i < pieces.length; i++) parser.write(pieces[i] ?? "")
    parser.end()
    return found
  }

type Arrays = ReadonlyArray<readonly [string, ...ReadonlyArray<string>]>

/** A source that gives one array for each pull, made beforehand: it costs as little as a source can. */
const source = (arrays: Arrays): Stream.Stream<string> =>
  Stream.fromPull(
    Effect.sync(() => {
      let at = 0
      return Effect.suspend(() => {
        const array = arrays[at++]
        return array === undefined ? Cause.done() : Effect.succeed(array)
      })
    })
  )

/** What a reader of a reply keeps: the text outside blocks, and the blocks. */
class Reply {
  text = ""
  readonly blocks: Array<{ readonly content: string }> = []
  keep(part: BlockParser.Part): this {
    if (part.type === "text_chunk") this.text += part.text
    else if (part.type === "block_complete") this.blocks.push(part.block)
    return this
  }
}

const bareReply = (arrays: Arrays) => {
  const reply = new Reply()
  const parser = BlockParser.make()
  for (const array of arrays) for (const piece of array) for (const part of parser.push(piece)) reply.keep(part)
  for (const part of parser.flush()) reply.keep(part)
  return reply
}

const streamReply = (arrays: Arrays) =>
  source(arrays).pipe(
    BlockParser.stream,
    Stream.runFold(
      () => new Reply(),
      (reply, part) => reply.keep(part)
    ),
    Effect.runPromise
  )

const bareCount = (arrays: Arrays) => {
  const found = { blocks: 0, length: 0 }
  const parser = BlockParser.make()
  for (const array of arrays) for (const piece of array) count(parser.push(piece), found)
  count(parser.flush(), found)
  return found
}

const streamCount = (arrays: Arrays) =>
  source(arrays).pipe(
    BlockParser.stream,
    Stream.runFold(
      () => 0,
      (blocks, part) => (part.type === "block_complete" ? blocks + 1 : blocks)
    ),
    Effect.runPromise
  )

const sourceOnly = (arrays: Arrays) => source(arrays).pipe(Stream.runDrain, Effect.runPromise)

// ---------------------------------------------------------------- measuring

/** The CPU time of one task over that of another. */
const ratio = async (task: () => unknown, base: () => unknown, rounds = 15): Promise<number> => {
  const ratios: Array<number> = []
  const warm = rounds >> 2
  for (let round = 0; round < rounds + warm; round++) {
    const taskFirst = round % 2 === 0
    const first = await cpu(taskFirst ? task : base)
    const second = await cpu(taskFirst ? base : task)
    // The first rounds warm up.
    if (round >= warm) ratios.push(taskFirst ? first / second : second / first)
  }
  return median(ratios)
}

/** What is near or over its bound is measured again, four times as long: until then the heap may still have grown. */
const settledRatio = async (task: () => unknown, base: () => unknown, rounds: number, bound: number) => {
  const value = await ratio(task, base, rounds)
  return value > bound * 0.95 ? ratio(task, base, 4 * rounds) : value
}

const row = (name: string, value: number, bound = Infinity): Row => ({ name, value, bound, pass: value <= bound })

const againstPeer = async (): Promise<ReadonlyArray<Row>> => {
  const peer = peerFold(await loadPeer("htmlparser2"))
  const rows: Array<Row> = []
  for (const [name, shape] of Object.entries(shared)) {
    const text = make(shape, megabyte)
    for (const size of name === "realistic" ? [1, 4, 16, 64, 4096] : [4, 64, 4096]) {
      const pieces = cut(text, size)
      const found = [fold(pieces).blocks, peer(pieces).blocks]
      if (found[0] !== found[1]) throw new Error(`${name}: ${found[0]} blocks, and ${found[1]} for the peer`)
      const value = await ratio(
        () => fold(pieces),
        () => peer(pieces)
      )
      rows.push(row(`fold / htmlparser2, ${name}, by ${size}`, value, size < 64 ? 1 : 0.5))
    }
  }
  return rows
}

/** One text of 10 MB against ten of 1 MB from the same pieces; ten times that is the ratio of one to one. */
const againstSize = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const [name, shape] of Object.entries({ ...shared, ...hostile })) {
    for (const size of [4, 4096]) {
      const pieces = cut(repeat(shape.unit, megabyte), size)
      const large = () => foldTexts(shape, pieces, 1, 10)
      const small = () => foldTexts(shape, pieces, 10, 1)
      const bound = 11
      const value = 10 * (await settledRatio(large, small, 7, bound / 10))
      rows.push(row(`10 MB / 1 MB, ${name}, by ${size}`, value, bound))
    }
  }
  return rows
}

/** No megabyte holds up the event loop for 100 ms. */
const againstTime = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const [name, shape] of Object.entries(hostile)) {
    const pieces = cut(make(shape, mebibyte), 2 * mebibyte)
    const times: Array<number> = []
    for (let round = 0; round < 7; round++) times.push(await cpu(() => fold(pieces)))
    rows.push(row(`1 MiB at once / 100 ms, ${name}`, median(times) / 100_000, 1))
  }
  return rows
}

const againstFold = async (): Promise<ReadonlyArray<Row>> => {
  const pieces = cut(repeat(realistic, megabyte), 4)
  const singles: Arrays = pieces.map((piece) => [piece])
  const arrays: Arrays = Array.from({ length: Math.ceil(pieces.length / 64) }, (_, at) => {
    const [first = "", ...rest] = pieces.slice(at * 64, (at + 1) * 64)
    return [first, ...rest]
  })
  const pairs: ReadonlyArray<readonly [string, () => unknown, () => unknown, number?]> = [
    ["one piece of 4 per pull, keeping text and blocks", () => streamReply(singles), () => bareReply(singles), 5],
    ["64 pieces of 4 per pull, keeping text and blocks", () => streamReply(arrays), () => bareReply(arrays), 1.5],
    ["one piece of 4 per pull, counting blocks", () => streamCount(singles), () => bareCount(singles)],
    ["one piece of 4 per pull, no parser at all", () => sourceOnly(singles), () => bareCount(singles)]
  ]
  const rows: Array<Row> = []
  for (const [name, stream, bare, bound] of pairs)
    rows.push(row(`Stream / fold, ${name}`, await ratio(stream, bare), bound))
  return rows
}

/** All ratios of this file. */
export const parserBench = async (): Promise<ReadonlyArray<Row>> => [
  ...(await againstPeer()),
  ...(await againstFold()),
  ...(await againstTime()),
  ...(await againstSize())
]

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const rows = await parserBench()
  for (const { bound, name, pass, value } of rows) {
    const limit = bound === Infinity ? "       " : `<= ${Math.round(bound * 10) / 10}`.padEnd(7)
    console.log(`${value.toFixed(2).padStart(6)} ${limit} ${pass ? "  " : "!!"} ${name}`)
  }
  process.exitCode = rows.every((row) => row.pass) ? 0 : 1
}
