/**
 * Samples 500 replies of llama.cpp by the grammars of several agents, over HTTP and through kernai's own provider, and
 * reads each as the kernel does. Then runs of the kernel itself. Prints the figures as one line of JSON.
 *
 * node --conditions=kernai-source accept/llama/sample.ts
 */
import { Cause, Effect, Exit, Layer, Option, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import * as Kernai from "../../src/index.ts"
import { OpenAiCompatibleProvider } from "../../src/provider/index.ts"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { answerFault, output, replyFault, skills } from "../../test/support/spoken.ts"
import { serve } from "./server.ts"
import { writeTinyModel } from "./tinyModel.ts"

const protocols = [{ name: "mcp" }, { name: "graphql" }]
const blocks = { _tag: "Blocks", skills: [], protocols: [], workflows: false, output: undefined } as const

/** The replies of agents as the kernel describes them, and why one does not fit. */
const agents: ReadonlyArray<{
  readonly name: string
  readonly grammar: Kernai.Provider.ReplyGrammar
  readonly fault: (reply: string) => string | undefined
}> = [
  { name: "all", grammar: { ...blocks, skills, protocols, workflows: true, output }, fault: replyFault(true) },
  { name: "skills", grammar: { ...blocks, skills }, fault: replyFault(false) },
  { name: "protocols", grammar: { ...blocks, protocols }, fault: replyFault(false) },
  { name: "plans", grammar: { ...blocks, workflows: true, agents: ["critic", "writer"] }, fault: replyFault(false) },
  { name: "typed answer", grammar: { _tag: "Json", schema: output }, fault: answerFault }
]

const count = 500
const model = { id: "tiny-random", capabilities: ["text"] } as const

interface Reply {
  readonly text: string
  readonly reason: string
}

const replyOf = (provider: Kernai.Provider.ProviderShape, grammar: Kernai.Provider.ReplyGrammar, seed: number) =>
  provider
    .stream({
      model,
      messages: [Kernai.Message.user("Do what you like.")],
      tools: [],
      generation: { seed, temperature: 1, maxTokens: 1_000 },
      media: { get: () => Effect.succeed(Option.none()), bytes: () => Effect.succeed(new Uint8Array()) },
      grammar
    })
    .pipe(
      Stream.runFold(
        (): Reply => ({ text: "", reason: "" }),
        (reply, part) =>
          part.type === "text-delta"
            ? { ...reply, text: reply.text + part.delta }
            : part.type === "finish"
              ? { ...reply, reason: part.reason }
              : reply
      )
    )

/** Samples the replies; each agent has its share, with seeds of its own. */
const sampled = Effect.fn(function* (provider: Kernai.Provider.ProviderShape) {
  const figures = { replies: 0, ended: 0, cut: 0, blocks: 0, kinds: 0, faults: new Array<string>() }
  const kinds = new Set<string>()
  for (let seed = 0; seed < count; seed++) {
    const agent = agents[seed % agents.length]
    if (agent === undefined) break
    const { reason, text } = yield* replyOf(provider, agent.grammar, seed + 1)
    figures.replies++
    const { blocks } = Kernai.BlockParser.parse(text)
    figures.blocks += blocks.length
    for (const { name, type } of blocks) kinds.add(`${type} ${name}`)
    if (reason === "length") {
      figures.cut++
      continue
    }
    figures.ended++
    const fault = agent.fault(text)
    if (fault !== undefined) figures.faults.push(`${agent.name}, seed ${seed + 1}: ${fault} in ${text}`)
  }
  return { ...figures, kinds: kinds.size }
})

/** The ends that a run by chance may have: its turns are used up, or its last reply was cut. */
const ends = (tag: string): boolean => ["MaxStepsReached", "ProviderError"].includes(tag)

/** Runs an agent with many skills by the kernel: every command that was read must reach its skill. */
const kernelRuns = Effect.fn(function* (provider: Kernai.Provider.ProviderShape) {
  const ended: { [tag: string]: number } = {}
  const figures = { runs: 0, calls: 0, ends: ended, faults: new Array<string>() }
  for (let seed = 0; seed < 20; seed++) {
    const agent = Kernai.Agent.make({
      instructions: "",
      model,
      skills: "all",
      grammar: true,
      maxSteps: 3,
      generation: { seed, temperature: 1, maxTokens: 1_000 }
    })
    const events = yield* Effect.exit(
      Kernai.Kernel.stream(agent, "Do what you like.", { provider }).pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            if (event.type === "skill_result") figures.calls++
            if (event.type === "skill_error") figures.faults.push(JSON.stringify(event))
          })
        )
      )
    )
    figures.runs++
    if (Exit.isSuccess(events)) continue
    const tag = Option.match(Cause.findErrorOption(events.cause), {
      onNone: () => "defect",
      onSome: ({ _tag }) => _tag
    })
    figures.ends[tag] = (figures.ends[tag] ?? 0) + 1
    if (!ends(tag)) figures.faults.push(`run ${seed}: ${Cause.pretty(events.cause).slice(0, 300)}`)
  }
  return figures
})

const folder = mkdtempSync(join(tmpdir(), "kernai-llama-"))
try {
  const path = join(folder, "tiny-random.gguf")
  writeTinyModel(path, 1)
  const server = await serve(path)
  const program = Effect.gen(function* () {
    const llamacpp = OpenAiCompatibleProvider.locals.get("llamacpp")
    if (llamacpp === undefined) return yield* Effect.die(new Error("there is no llamacpp"))
    const provider = yield* OpenAiCompatibleProvider.make({ ...llamacpp, name: "llamacpp", baseUrl: server.baseUrl })
    const direct = yield* sampled(provider)
    const kernel = yield* kernelRuns(provider).pipe(
      Effect.provide(
        Kernai.Kernel.layerMemory.pipe(
          Layer.provide(
            Layer.merge(Kernai.SkillRegistry.layer(...skills), Layer.succeed(Kernai.Provider.Provider, provider))
          )
        )
      )
    )
    return { ...direct, agents: agents.length, kernel }
  })
  try {
    const figures = await Effect.runPromise(program.pipe(Effect.provide(FetchHttpClient.layer)))
    console.log(JSON.stringify(figures))
  } finally {
    await server.close()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
