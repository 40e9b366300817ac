/**
 * From process start to the first event, against `ai`; and what a minimal agent weighs in a bundle.
 *
 * Both programs are bundled by the same tool, so that neither pays for its
 * number of files. `node bench/start.ts`, after `npm ci` in bench/.
 */
import { build } from "esbuild"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { median, type Row, table } from "./support.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

const kernai = `
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Agent, Kernel, Provider, Skill, SkillRegistry, StreamPart } from "../src/index.ts"

const echo = Skill.make("echo", {
  description: "Says it again",
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
const echo = tool({ description: "Says it again", inputSchema: jsonSchema({ type: "object", properties: { text: { type: "string" } } }), execute: async ({ text }) => text })
for await (const event of streamText({ model, prompt: "hello", tools: { echo } }).stream) {
  console.log(event.type)
  break
}
`

const bundle = async (
  contents: string,
  outfile: string,
  platform: "node" | "browser",
  external: ReadonlyArray<string> = []
) => {
  await build({
    stdin: { contents, resolveDir: here, loader: "ts" },
    outfile,
    bundle: true,
    minify: true,
    format: "esm",
    platform,
    target: "es2022",
    external: [...external],
    logLevel: "error",
    banner:
      platform === "node"
        ? { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' }
        : {}
  })
  return readFileSync(outfile)
}

const millis = (file: string): number => {
  const started = performance.now()
  const { status, stderr, stdout } = spawnSync(process.execPath, [file], { encoding: "utf8" })
  if (status !== 0 || stdout.trim() === "") throw new Error(`${file} failed: ${stderr}`)
  return performance.now() - started
}

export const startBench = async (): Promise<ReadonlyArray<Row>> => {
  const folder = mkdtempSync(join(tmpdir(), "kernai-start-"))
  try {
    const ours = join(folder, "kernai.mjs")
    const theirs = join(folder, "ai.mjs")
    await bundle(kernai, ours, "node")
    await bundle(ai, theirs, "node")
    const times: { readonly ours: Array<number>; readonly theirs: Array<number> } = { ours: [], theirs: [] }
    for (let round = 0; round < 12; round++) {
      const [a, b] = [millis(ours), millis(theirs)]
      if (round < 2) continue
      times.ours.push(a)
      times.theirs.push(b)
    }
    const browser = await bundle(kernai, join(folder, "browser.js"), "browser")
    const kib = gzipSync(browser, { level: 9 }).length / 1024
    const text = browser.toString("utf8")
    const start = median(times.ours) / median(times.theirs)
    return [
      {
        name: `start: process start to first event over ai (${median(times.ours).toFixed(0)} against ${median(times.theirs).toFixed(0)} ms)`,
        value: start,
        bound: 1.7,
        pass: start <= 1.7
      },
      { name: "bundle: KiB gzip of a minimal agent with effect inside", value: kib, bound: 110, pass: kib <= 110 },
      {
        name: "bundle: effect/ai inside (0 is no)",
        value: text.includes("effect/ai/") ? 1 : 0,
        bound: 0,
        pass: !text.includes("effect/ai/")
      }
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) table("start", await startBench())
