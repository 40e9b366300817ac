/**
 * The CPU of `examples/01-hello.ts` on the package as it is built, against a bare Effect program; the time from process
 * start to the first event of a bundle, against `ai`; and the weight of a minimal agent in a bundle.
 */
import { build, transform } from "esbuild"
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { compare, ratioRow, type Row, row, wall } from "./support.ts"

const here = fileURLToPath(new URL(".", import.meta.url))
const dist = fileURLToPath(new URL("../dist", import.meta.url))

const kernai = `
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../dist/Agent.js"
import * as Kernel from "../dist/Kernel.js"
import * as Provider from "../dist/Provider.js"
import * as Skill from "../dist/Skill.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import * as StreamPart from "../dist/StreamPart.js"

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
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"

const Event = Schema.Struct({ type: Schema.String, text: Schema.String })
class Source extends Context.Service()("Source") {}
const source = Layer.succeed(Source, { events: Stream.fromArray([{ type: "hi", text: "hello" }]) })
const program = Source.use(({ events }) =>
  events.pipe(
    Stream.mapEffect(Schema.decodeUnknownEffect(Event)),
    Stream.take(1),
    Stream.runForEach((event) => Console.log(event.type))
  )
)
await Effect.runPromise(Effect.provide(program, source))
`

/** Runs a program as a user does, without a bundler, and returns the milliseconds of CPU that its process took. */
const started = async (folder: string, name: string, source: string) => {
  const { code } = await transform(source, { loader: "ts", format: "esm" })
  const file = join(folder, `${name}.mjs`)
  const text = code.replaceAll(/"kernai(\/\w+)?"/g, (_, door = "") => `"${dist}${door}/index.js"`)
  writeFileSync(file, `${text}\nconst { system, user } = process.cpuUsage(); console.error((system + user) / 1000)`)
  return () => {
    const { status, stderr } = spawnSync(process.execPath, [file], { encoding: "utf8" })
    if (status !== 0) return Promise.reject(new Error(stderr))
    return Promise.resolve(Number(stderr))
  }
}

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
  // Beside the installed packages, which the programs import.
  const folder = mkdtempSync(join(here, "start-"))
  try {
    const program = async (name: string, source: string) => {
      const file = join(folder, `${name}.mjs`)
      await bundle(source, file, "node")
      return () => wall(() => firstEvent(file))
    }
    const rounds = { warm: 2, counted: 21 }
    const hello = await started(folder, "hello", readFileSync(join(here, "../examples/01-hello.ts"), "utf8"))
    const overEffect = await compare(hello, await started(folder, "effect", effect), rounds)
    const overAi = await compare(await program("kernai", kernai), await program("ai", ai), rounds)
    const browser = await bundle(kernai, join(folder, "browser.js"), "browser")
    const kib = gzipSync(browser, { level: 9 }).length / 1024
    const hasEffectAi = browser.toString("utf8").includes("effect/ai/")
    return [
      ratioRow(
        "start.effect",
        "examples/01-hello.ts: CPU of its process over a bare Effect program",
        overEffect,
        "ms",
        1.25
      ),
      ratioRow("start.ai", "process start to first event over ai", overAi, "ms", 1.7),
      row("start.bundle", "KiB gzip of a minimal agent with effect inside", kib, 110),
      row("start.effectAi", "effect/ai in that bundle (0 is no)", hasEffectAi ? 1 : 0, 0)
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
