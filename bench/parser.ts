/**
 * The block parser against htmlparser2, in CPU time.
 *
 * - the fold against htmlparser2's `Parser` on the same pieces, both finding every block
 * - the fold in a Stream against the bare fold
 * - 10 MB against 1 MB, and hostile texts against a time limit
 */
import { Cause, Effect, Stream } from "effect"
import { Parser } from "htmlparser2"
import * as BlockParser from "../dist/BlockParser.js"
import { compare, cpu, median, ratioRow, type Row, row } from "./support.ts"

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

/** A text of any size: one unit repeated inside a frame. */
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

/** Texts made to slow this parser down (S-12). */
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

/** Cuts a text into separate strings, as a decoder emits them, not slices of one. */
const cut = (text: string, size: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let at = 0; at < text.length; at += size) {
    const piece: string = JSON.parse(JSON.stringify(text.slice(at, at + size)))
    pieces.push(piece)
  }
  return pieces
}

// ---------------------------------------------------------------- contenders

/** The number and total length of the blocks found, so that neither side can skip work. */
interface Found {
  blocks: number
  length: number
}

const fold = (pieces: ReadonlyArray<string>): Found => foldTexts({ unit: "" }, pieces, 1, 1)

/** Parses so many texts in a row. Each repeats the pieces so many times, in the frame of its shape. */
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

const core = new Set(["command", "json", "final", "plan", "result", "error"])

/** htmlparser2 with the settings that are its fastest, and nearest to the block grammar. */
const peerFold = (pieces: ReadonlyArray<string>): Found => {
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

/** Emits one prepared array for each pull, which costs as little as a source can. */
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

/** A consumer that keeps the text outside blocks, and the blocks. */
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

type Task = () => unknown

/** Compares the CPU milliseconds of a task and its base. */
const compareCpu = (task: Task, base: Task, counted = 15) => {
  const ms = (body: Task) => async () => (await cpu(body)) / 1000
  return compare(ms(task), ms(base), { warm: counted >> 2, counted })
}

/** Measures a result near its bar again, four times as long: the heap may still have been growing. */
const compareSettled = async (task: Task, base: Task, counted: number, bound: number) => {
  const result = await compareCpu(task, base, counted)
  return result.ratio > bound * 0.95 ? compareCpu(task, base, 4 * counted) : result
}

/** A realistic reply in pieces of about a token has the strictest bar. */
const peerBound = (name: string, size: number): number => {
  if (name === "realistic" && size === 4) return 0.75
  return size < 64 ? 1 : 0.5
}

const againstPeer = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const [name, shape] of Object.entries(shared)) {
    const text = make(shape, megabyte)
    for (const size of name === "realistic" ? [1, 4, 16, 64, 4096] : [4, 64, 4096]) {
      const pieces = cut(text, size)
      const [ours, theirs] = [fold(pieces).blocks, peerFold(pieces).blocks]
      if (ours !== theirs) throw new Error(`${name}: ${ours} blocks, and ${theirs} of htmlparser2`)
      const times = await compareCpu(
        () => fold(pieces),
        () => peerFold(pieces)
      )
      const title = `fold over htmlparser2: ${name}, in pieces of ${size}`
      rows.push(ratioRow(`parser.peer.${name}.${size}`, title, times, "ms", peerBound(name, size)))
    }
  }
  return rows
}

/** Compares one text of 10 MB with ten of 1 MB from the same pieces, and reports ten times their ratio. */
const againstSize = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  const bound = 11
  for (const [name, shape] of Object.entries({ ...shared, ...hostile })) {
    for (const size of [4, 4096]) {
      const pieces = cut(repeat(shape.unit, megabyte), size)
      const large = () => foldTexts(shape, pieces, 1, 10)
      const small = () => foldTexts(shape, pieces, 10, 1)
      const { ratio } = await compareSettled(large, small, 7, bound / 10)
      rows.push(row(`parser.size.${name}.${size}`, `10 MB over 1 MB: ${name}, in pieces of ${size}`, 10 * ratio, bound))
    }
  }
  return rows
}

/** No megabyte blocks the event loop for 100 ms. */
const againstTime = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const [name, shape] of Object.entries(hostile)) {
    const pieces = cut(make(shape, mebibyte), 2 * mebibyte)
    const times: Array<number> = []
    for (let round = 0; round < 7; round++) times.push(await cpu(() => fold(pieces)))
    rows.push(row(`parser.time.${name}`, `1 MiB in one piece over 100 ms: ${name}`, median(times) / 100_000, 1))
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
  const over = async (id: string, name: string, stream: Task, bare: Task, bound: number | null): Promise<Row> =>
    ratioRow(`parser.stream.${id}`, `Stream over fold: ${name}`, await compareCpu(stream, bare), "ms", bound)
  const [one, many] = ["one piece of 4 per pull", "64 pieces of 4 per pull"]
  return [
    await over(
      "single",
      `${one}, keeping text and blocks`,
      () => streamReply(singles),
      () => bareReply(singles),
      5
    ),
    await over(
      "arrays",
      `${many}, keeping text and blocks`,
      () => streamReply(arrays),
      () => bareReply(arrays),
      1.5
    ),
    await over(
      "count",
      `${one}, counting blocks`,
      () => streamCount(singles),
      () => bareCount(singles),
      null
    ),
    await over(
      "source",
      `${one}, no parser`,
      () => sourceOnly(singles),
      () => bareCount(singles),
      null
    )
  ]
}

export default async (): Promise<ReadonlyArray<Row>> => [
  ...(await againstPeer()),
  ...(await againstFold()),
  ...(await againstTime()),
  ...(await againstSize())
]
