/**
 * Mutated inputs against everything that reads what comes from outside: nothing may be thrown, only typed errors given.
 *
 * What is mutated are the texts of the fixtures and of `test/corpus`. One number decides everything, so what was found
 * can be played again.
 */
import { Cause, Effect, Exit, Result, Schema, Stream } from "effect"
import { Address, Block, BlockParser, Content, Dialect, Limits, Plan, Policy, RunCodec, Skill, Usage } from "kernai"
import { AgentFile, PolicyFile } from "kernai/file"
import { McpConfig } from "kernai/mcp"
import * as fs from "node:fs"
import * as path from "node:path"
import { jsonDepth } from "../../src/kit/bounds.ts"
import { parseJson } from "../../src/kit/json.ts"
import { cassettes, request, stub, vendors } from "../support/provider.ts"
import { randomOf } from "../support/random.ts"

/** What was done and what was found. */
export interface Fuzzed {
  readonly inputs: number
  readonly findings: ReadonlyArray<string>
}

/** Reads an input and says what is wrong about that, if something is. */
type Reading = (input: string, random: () => number) => string | undefined | Promise<string | undefined>

// ---------------------------------------------------------------- what is read

/** A failure must be one, with a tag: what is thrown inside an effect is a bug. */
const typed = (exit: Exit.Exit<unknown, unknown>): string | undefined =>
  Exit.isSuccess(exit) || exit.cause.reasons.every((reason) => Cause.isFailReason(reason) && isTagged(reason.error))
    ? undefined
    : Cause.pretty(exit.cause)

const isTagged = (error: unknown): boolean => typeof error === "object" && error !== null && "_tag" in error

const effectful =
  (read: (text: string) => Effect.Effect<unknown, unknown>): Reading =>
  (text) =>
    typed(Effect.runSyncExit(read(text)))

/** What could be read can be written, and reads back as the same. */
const codec =
  <A>(decode: (text: string) => Result.Result<A, unknown>, encode: (value: A) => string): Reading =>
  (text) => {
    const once = decode(text)
    if (Result.isFailure(once)) return undefined
    const written = encode(once.success)
    const twice = decode(written)
    if (Result.isFailure(twice)) return `what was written cannot be read: ${written}`
    return encode(twice.success) === written ? undefined : `what was written reads back as something else: ${written}`
  }

const json =
  <A>(decode: (value: unknown) => Result.Result<A, unknown>) =>
  (text: string): Result.Result<A, unknown> =>
    Result.flatMap(parseJson(text, jsonDepth), decode)

const inPieces = (text: string, random: () => number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let at = 0; at < text.length;) {
    const size = Math.floor(random() * 8)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

const blocks: Reading = (text, random) => {
  const whole = BlockParser.parse(text)
  const parser = BlockParser.make()
  const parts = [...inPieces(text, random).flatMap((piece) => parser.push(piece)), ...parser.flush()]
  const complete = parts.flatMap((part) => (part.type === "block_complete" ? [part.block] : []))
  const outside = parts.flatMap((part) => (part.type === "text_chunk" ? [part.text] : [])).join("")
  return JSON.stringify([complete, outside]) === JSON.stringify([whole.blocks, whole.text])
    ? undefined
    : `read in pieces it is ${JSON.stringify([complete, outside])}, as a whole ${JSON.stringify([whole.blocks, whole.text])}`
}

/** What is escaped opens and closes nothing (BP-76). */
const escapes: Reading = (text) => {
  const around = BlockParser.parse(Block.render(Block.result("x", Block.escape(text))))
  return around.blocks.length === 1 && around.text.trim() === "" ? undefined : "what was escaped is a block"
}

const silent: Dialect.Listener = { text: () => {}, block: () => {}, part: () => {} }

const dialect =
  (name: "blocks" | "tools"): Reading =>
  (text, random) => {
    const origin = { provider: "p", model: "m" }
    const read = (pieces: ReadonlyArray<string>) => {
      const reader = Dialect.of(name, Dialect.markups).reader(silent, Limits.defaults, origin)
      for (const delta of pieces) reader.push([{ type: "text-delta", id: "0", delta }])
      return JSON.stringify(reader.end())
    }
    return read([text]) === read(inPieces(text, random)) ? undefined : "read in pieces it is another reply"
  }

const skill = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({ x: Schema.String, n: Schema.optional(Schema.Number) }),
  effects: "read",
  execute: () => Effect.succeed("")
})

const wire = RunCodec.make()

/** A plan that was accepted has every task in it once, in an order it can run in. */
const plans: Reading = (text) => {
  const plan = json((value) => Plan.validate(value))(text)
  if (Result.isFailure(plan)) return undefined
  const ids = plan.success.tasks.map((task) => task.id).toSorted()
  const order = Plan.completionOrder(plan.success).toSorted()
  return ids.join() === order.join() ? undefined : `a plan of ${ids.join()} would run ${order.join()}`
}

const address = (schema: Schema.Codec<Address.AgentId | Address.TopicId, string>): Reading =>
  codec<Address.AgentId | Address.TopicId>(Schema.decodeUnknownResult(schema), String)

/** Who reads what; inputs are made from fixtures of the same kind, and from the corpus. */
const readings: ReadonlyArray<readonly [name: string, fixture: string, read: Reading]> = [
  ["blocks", "vectors/parser.json", blocks],
  ["blocks", "vectors/kernel.json", blocks],
  ["escapes", "vectors/parser.json", escapes],
  ["the dialect of blocks", "vectors/kernel.json", dialect("blocks")],
  ["the dialect of tools", "vectors/kernel.json", dialect("tools")],
  ["parameters", "vectors/params.json", (text) => void skill.parameters(text)],
  ["plans", "vectors/plan.json", plans],
  [
    "contents",
    "vectors/content-blocks.json",
    codec(json(Content.decode), (content) => JSON.stringify(Content.encode(content)))
  ],
  ["usage", "vectors/providers.json", codec(json(Usage.decode), (usage) => JSON.stringify(Usage.encode(usage)))],
  [
    "records",
    "journal-v2.jsonl",
    codec(wire.decodeRecord, (record) => Result.getOrThrow(RunCodec.encodeRecord(record)))
  ],
  ["states", "state-v2.jsonl", (text) => void wire.decodeState([text])],
  ["agents", "toolbox/openai_tools.json", effectful((text) => AgentFile.parse(text))],
  [
    "policies",
    "vectors/policy-registry.json",
    effectful((text) => Effect.flatMap(PolicyFile.parse(text), (rules) => Effect.fromResult(Policy.rules(rules))))
  ],
  ["servers", "vectors/mcp.json", effectful((text) => McpConfig.fromYaml(text, { env: {} }))],
  ["addresses", "vectors/addresses.json", address(Address.AgentIdFromString)],
  ["addresses", "vectors/addresses.json", address(Address.TopicIdFromString)]
]

/** A reply of a vendor, its bytes as they came: whichever vendor it is of. */
const reply = async (vendor: string, bytes: Uint8Array<ArrayBuffer>): Promise<string | undefined> => {
  const make = vendors[vendor]
  if (make === undefined) return `no vendor ${vendor}`
  const http = stub(() => Effect.succeed(new Response(bytes, { headers: { "content-type": "text/event-stream" } })))
  const read = Effect.flatMap(make({}), (provider) => Stream.runDrain(provider.stream(request())))
  const limits = { ...Limits.defaults, modelAttempts: 1 }
  const exit = await Effect.runPromiseExit(
    read.pipe(Effect.provide(http.layer), Effect.provideService(Limits.Limits, limits))
  )
  return typed(exit)
}

// ---------------------------------------------------------------- what is mutated

const strings = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? [
          ...(JSON.stringify(value).length < longest ? [JSON.stringify(value)] : []),
          ...Object.values(value).flatMap((item) => strings(item))
        ]
      : []

const longest = 4_000

const fixtures = path.join(import.meta.dirname, "../fixtures")

const linesOf = (file: string): ReadonlyArray<unknown> => {
  const text = fs.readFileSync(file, "utf8")
  return file.endsWith(".jsonl")
    ? text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]))
    : [JSON.parse(text)]
}

const nasty = linesOf(path.join(import.meta.dirname, "../corpus/texts.json")).flatMap(strings)

/** Every text of a fixture and every value in it as JSON, the longest first: what is whole is read furthest. */
const corpus = (fixture: string): ReadonlyArray<string> =>
  [...new Set(linesOf(path.join(fixtures, fixture)).flatMap(strings))].sort((a, b) => b.length - a.length)

/** What vendors said. */
const bodies = (): ReadonlyArray<string> =>
  ["cassettes", "synthetic", "toolbox"].flatMap((folder) =>
    cassettes(folder).flatMap(({ text }) => {
      const {
        interactions
      }: { readonly interactions: ReadonlyArray<{ readonly response: { readonly body?: unknown } }> } = JSON.parse(text)
      return interactions.flatMap(({ response: { body } }) =>
        typeof body === "string" ? [body.slice(0, longest)] : []
      )
    })
  )

const tokens = [
  ..."<>\"'{}[]:,\\/-&*!|%@`\0\n\r\t\u2028\ud800\udfff\ufeff",
  '<block type="final">',
  "</block>",
  "<final>",
  "&lt;",
  "__proto__",
  "constructor",
  "1e400",
  "-0",
  "null",
  "\\ud800",
  "data: ",
  "event: error\n",
  "\n\n",
  "[DONE]",
  "${HOME}",
  "<<: *a",
  "!!js/function",
  "9".repeat(400),
  "[".repeat(200)
]

const pick = <A>(list: ReadonlyArray<A>, random: () => number): A => {
  const item = list[Math.floor(random() * list.length)]
  if (item === undefined) throw new Error("nothing to pick from")
  return item
}

const values: ReadonlyArray<unknown> = [
  null,
  true,
  0,
  -0,
  -1,
  0.5,
  2 ** 53,
  "",
  "\ud800",
  "\0",
  "__proto__",
  [],
  {},
  [[]],
  { type: "x" }
]

/** JSON with one value of it replaced, left out, or said twice; what is no JSON stays as it is. */
const regrown = (text: string, random: () => number): string => {
  const read = parseJson(text, jsonDepth)
  if (Result.isFailure(read)) return text
  const nodes: Array<object> = []
  const gather = (value: unknown) => {
    if (typeof value !== "object" || value === null) return
    nodes.push(value)
    for (const item of Object.values(value)) gather(item)
  }
  gather(read.success)
  if (nodes.length === 0) return text
  const node = pick(nodes, random)
  const keys = Object.keys(node)
  const key = keys.length === 0 ? "x" : pick(keys, random)
  const value: unknown = Reflect.get(node, key)
  switch (Math.floor(random() * 4)) {
    case 0:
      Reflect.set(node, key, pick(values, random))
      break
    case 1:
      if (Array.isArray(node)) node.push(value)
      else Reflect.set(node, `${key}_`, value)
      break
    case 2:
      Reflect.deleteProperty(node, key)
      break
    case 3:
      Reflect.set(node, key, typeof value === "string" ? `${value}${pick(tokens, random)}` : [value])
  }
  return JSON.stringify(read.success) ?? text
}

/** One to four changes: something cut out, put in, doubled, replaced, or grown together with another text. */
const mutated = (text: string, all: ReadonlyArray<string>, random: () => number): string => {
  let result = random() < 0.5 ? regrown(text, random) : text
  if (result !== text && random() < 0.8) return result
  for (let left = 1 + Math.floor(random() * 4); left > 0; left--) {
    const at = Math.floor(random() * (result.length + 1))
    const end = Math.min(result.length, at + Math.floor(random() ** 3 * 40))
    const [before, middle, after] = [result.slice(0, at), result.slice(at, end), result.slice(end)]
    switch (Math.floor(random() * 6)) {
      case 0:
        result = before + after
        break
      case 1:
        result = before + pick(tokens, random) + middle + after
        break
      case 2:
        result = before + middle + middle + middle + after
        break
      case 3:
        result = before + String.fromCharCode(Math.floor(random() * 256)) + after
        break
      case 4:
        result = before
        break
      case 5:
        result = before + pick(all, random).slice(Math.floor(random() * 20))
    }
  }
  return result.slice(0, 4 * longest)
}

/** Bytes as they are on a wire: some of them no longer UTF-8. */
const bytesOf = (text: string, random: () => number): Uint8Array<ArrayBuffer> => {
  const bytes = new TextEncoder().encode(text)
  if (random() < 0.5) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
  return bytes
}

// ---------------------------------------------------------------- the fuzz

/** How an input is read, and how long that may take: milliseconds, not looked at unless said. */
export interface Settings {
  readonly readings?: typeof readings
  readonly patience?: number
}

/** One of sixteen inputs is a reply of a vendor. Each has a number of its own, counted from `seed` on. */
export const fuzz = async (inputs: number, seed: number, settings: Settings = {}): Promise<Fuzzed> => {
  const { patience = Infinity } = settings
  const [replies, names] = [bodies(), Object.keys(vendors)]
  const kinds = (settings.readings ?? readings).map(([name, fixture, read]) => ({ name, read, texts: corpus(fixture) }))
  const findings: Array<string> = []
  for (let number = seed; number < seed + inputs; number++) {
    const random = randomOf(number)
    const isReply = number % 16 === 0
    const { name, read, texts } = pick(kinds, random)
    const vendor = pick(names, random)
    const all = isReply ? replies : random() < 0.2 ? nasty : texts
    const input = mutated(
      pick(all, () => random() ** 2),
      all,
      random
    )
    const bytes = isReply ? bytesOf(input, random) : undefined
    const once = async () => (bytes === undefined ? read(input, random) : reply(vendor, bytes))
    const started = performance.now()
    const wrong = await once().catch((error: unknown) => `it threw ${String(error)}`)
    const late = performance.now() - started > patience ? await fastest(once, 3) : 0
    const said = wrong ?? (late > patience ? `R-21: it took ${late.toFixed(0)} ms` : undefined)
    if (said !== undefined) findings.push(`${isReply ? vendor : name} (seed ${number}): ${said}`)
  }
  if (Reflect.get({}, "polluted") !== undefined) findings.push("S-10: a prototype was changed")
  return { inputs, findings }
}

/** Others use this machine, too: what is slow by itself is slow each time. */
const fastest = async (body: () => Promise<unknown>, times: number): Promise<number> => {
  let least = Infinity
  for (let left = times; left > 0; left--) {
    const started = performance.now()
    await body().catch(() => undefined)
    least = Math.min(least, performance.now() - started)
  }
  return least
}
