/**
 * From process start to the first event, against a bare Effect program and `ai`; and the weight of a
 * minimal agent in a bundle.
 *
 * One tool bundles every program, so none pays for its number of files.
 */
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { compare, ratioRow, type Row, row, wall } from "./support.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

const kernai = `
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../src/Agent.ts"
import * as Kernel from "../src/Kernel.ts"
import * as Provider from "../src/Provider.ts"
import * as Skill from "../src/Skill.ts"
import * as SkillRegistry from "../src/SkillRegistry.ts"
import * as StreamPart from "../src/StreamPart.ts"

const echo = Skill.make("echo", {
  description: "Returns its input",
  input: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.succeed(text)
})
const provider = Layer.succeed(Provider.Provider, {
  name: "mock",
  stream: () => Stream.fromArray([StreamPart.text("<final>hi</final>"), StreamPart.finish()])
})
const agent = Agent.make({ instructions: "You test.", model: "m", skills: [echo] })
const program = Kernel.stream(agent, "hello").pipe(
  Stream.take(1),
  Stream.runForEach((event) => Effect.sync(() => console.log(event.type))),
  Effect.provide(Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(echo), provider])))
)
Effect.runPromise(program)
`

/** The parts of Effect that any agent needs: an input decoded by a Schema, a service from a Layer, a Stream of events. */
const effect = `
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const Event = Schema.Struct({ type: Schema.String, text: Schema.String })
class Source extends Context.Service()("Source") {}
const source = Layer.succeed(Source, { events: Stream.fromArray([{ type: "hi", text: "hello" }]) })
const program = Source.use(({ events }) =>
  events.pipe(
    Stream.mapEffect(Schema.decodeUnknownEffect(Event)),
    Stream.take(1),
    Stream.runForEach((event) => Effect.sync(() => console.log(event.type)))
  )
).pipe(Effect.provide(source))
Effect.runPromise(program)
`

const ai = `
import { jsonSchema, streamText, tool } from "ai"
import { MockLanguageModelV4 } from "ai/test"

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }
const parts = [
  { type: "stream-start", warnings: [] },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "hi" },
  { type: "text-end", id: "0" },
  { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage }
]
const model = new MockLanguageModelV4({
  doStream: async () => ({ stream: new ReadableStream({ start(c) { for (const part of parts) c.enqueue(part); c.close() } }) })
})
const echo = tool({ description: "Returns its input", inputSchema: jsonSchema({ type: "object", properties: { text: { type: "string" } } }), execute: async ({ text }) => text })
for await (const event of streamText({ model, prompt: "hello", tools: { echo } }).stream) {
  console.log(event.type)
  break
}
`

const bundle = async (contents: string, outfile: string, platform: "node" | "browser") => {
  const require = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);'
  await build({
    stdin: { contents, resolveDir: here, loader: "ts" },
    outfile,
    bundle: true,
    minify: true,
    format: "esm",
    platform,
    target: "es2022",
    logLevel: "error",
    banner: platform === "node" ? { js: require } : {}
  })
  return readFileSync(outfile)
}

/** Starts a process and waits for its first event, which it prints. */
const firstEvent = (file: string) =>
  new Promise<void>((resolve, reject) => {
    const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] })
    child.stdout.once("data", () => resolve())
    child.once("error", reject)
    child.once("exit", (code) => reject(new Error(`${file} ended with ${code} and printed no event`)))
  })

export default async (): Promise<ReadonlyArray<Row>> => {
  const folder = mkdtempSync(join(tmpdir(), "kernai-start-"))
  try {
    const program = async (name: string, source: string) => {
      const file = join(folder, `${name}.mjs`)
      await bundle(source, file, "node")
      return () => wall(() => firstEvent(file))
    }
    const ours = await program("kernai", kernai)
    const rounds = { warm: 2, counted: 21 }
    const overEffect = await compare(ours, await program("effect", effect), rounds)
    const overAi = await compare(ours, await program("ai", ai), rounds)
    const browser = await bundle(kernai, join(folder, "browser.js"), "browser")
    const kib = gzipSync(browser, { level: 9 }).length / 1024
    const hasEffectAi = browser.toString("utf8").includes("effect/ai/")
    return [
      ratioRow("start.effect", "process start to first event over a bare Effect program", overEffect, "ms", 1.25),
      ratioRow("start.ai", "process start to first event over ai", overAi, "ms", 1.7),
      row("start.bundle", "KiB gzip of a minimal agent with effect inside", kib, 110),
      row("start.effectAi", "effect/ai in that bundle (0 is no)", hasEffectAi ? 1 : 0, 0)
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
