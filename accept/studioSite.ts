/**
 * A studio with scripted agents, on a store in a file, for browsers.
 */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import {
  Agent,
  Content,
  Kernel,
  Message,
  Policy,
  ProtocolRegistry,
  Provider,
  RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "../src/index.ts"
import { Code } from "../src/code/index.ts"
import { SqlMediaStore, SqlRunStore } from "../src/sql/index.ts"
import { Studio } from "../src/studio/index.ts"
import { MockProvider } from "../src/testing/index.ts"
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { disguised, hostile, pageOf } from "./studioHostile.ts"
import { serve, urlIn } from "./studioServer.ts"

/** What proves the screens. */
export interface Counts {
  /** How often the skill `pay` ran. */
  paid: number
  /** How often the skill `book` ran. */
  booked: number
  stopped: number
  /** The processes that the skill `hang` started, and that live. */
  readonly processes: Set<number>
}

/** A studio that runs. */
export interface Site {
  readonly url: string
  readonly counts: Counts
  /** Stores a run of the first agent. The studio's worker takes it up. */
  readonly submit: (question: string) => Promise<string>
  /** Submits a program, as a model would write it. */
  readonly submitCode: (code: string) => Promise<string>
  readonly stateOf: (runId: string) => Promise<RunState.RunState | undefined>
  readonly recordsOf: (runId: string) => Promise<ReadonlyArray<RunState.RunRecord>>
  /** The runs below a run. */
  readonly below: (runId: string) => Promise<ReadonlyArray<string>>
  /** The prompts that the provider received. */
  readonly requests: () => ReadonlyArray<Provider.Request>
}

/** Where matrix reports are, in the folder of a site. */
export const scenariosIn = (folder: string): string => `${folder}/scenarios`
/** The store of a site. */
export const storeIn = (folder: string): string => `${folder}/runs.db`

const command = (name: string, input: unknown) =>
  `<block type="command" name="${name}">${typeof input === "string" ? input : JSON.stringify(input)}</block>`
const final = (text: string) => `<block type="final">${text}</block>`

// ---------------------------------------------------------------- replies

interface Corpus {
  readonly vectors: ReadonlyArray<{ readonly input: string }>
}

/** Replies of every kind: repaired, unclosed, forged and cut ones, and text that only looks like a block. */
export const corpus: ReadonlyArray<string> = (() => {
  const file = new URL("../test/fixtures/vectors/parser.json", import.meta.url)
  const { vectors }: Corpus = JSON.parse(readFileSync(file, "utf8"))
  const replies = vectors.map(({ input }) => input).filter((text) => text.includes("<") && text.length < 2_000)
  const step = Math.floor(replies.length / 40)
  return Array.from({ length: 40 }, (_, at) => replies[at * step] ?? "")
})()

/** A reply to the prompt of the helper. */
const helped = (text: string): string => {
  if (/type="(result|error)"/.test(text)) return final("Helped.")
  if (/hang/.test(text)) return command("hang", {})
  if (/book/.test(text)) return command("book", { seat: "7C" })
  return final("Nothing to do.")
}

const isResult = (text: string) => /type="(result|error)"/.test(text)

/** A reply to the last message: a call for a question, an answer for a result. */
const replyTo = ({ messages }: Provider.Request): string => {
  const system = Message.text(messages.find(({ role }) => role === "system") ?? Message.user(""))
  const texts = messages.filter(({ role }) => role !== "system").map((message) => Message.text(message))
  const text = texts.at(-1) ?? ""
  if (system.includes("You help.")) return helped(text)
  const asked = messages.filter(({ role }) => role === "user").map((message) => Message.text(message))
  const question = asked.findLast((one) => !isResult(one)) ?? ""
  if (/slowly/.test(question) && texts.filter(isResult).length < 2) {
    return `One word after the other, slowly.\n${command("look", { row: texts.filter(isResult).length })}`
  }
  if (isResult(text)) return final(/hostile/.test(question) ? `That is all. ${hostile}` : "That is all.")
  const [, at] = /corpus (\d+)/.exec(text) ?? []
  if (at !== undefined) return corpus[Number(at)] ?? ""
  if (/delegate/.test(text)) return command("helper", text)
  if (/disguise/.test(text)) return `I pay ${disguised}.\n${command("pay", { to: disguised, amount: 12 })}`
  if (/hostile/.test(text)) return `${hostile}\n${command("book", { seat: hostile })}`
  if (/seat/.test(text)) return `Let me look.\n${command("book", { seat: "12A" })}`
  if (/pay/i.test(text)) return `I pay him.\n${command("pay", { to: "Eva", amount: 12 })}`
  if (/wait/.test(text)) return command("wait", {})
  if (/map/.test(text)) return command("map", {})
  return final("A fiber is a light thread of execution, managed by the runtime and not by the system.")
}

// ---------------------------------------------------------------- skills

/** Starts a process that ends only when it is killed. */
const hang = ({ processes }: Counts) =>
  Effect.callback<string>(() => {
    const child = spawn("sleep", ["600"], { stdio: "ignore" })
    const { pid = 0 } = child
    processes.add(pid)
    return Effect.callback<void>((resume) => {
      child.once("exit", () => {
        processes.delete(pid)
        resume(Effect.void)
      })
      child.kill()
    })
  })

const skillsOf = (counts: Counts) => [
  Skill.make("book", {
    description: "Books a seat",
    effects: "read",
    input: Schema.Struct({ seat: Schema.String }),
    execute: ({ seat }) =>
      Effect.suspend(() => {
        counts.booked++
        return seat === "7C" ? Effect.succeed("booked 7C") : Effect.fail(`seat taken: ${seat}`)
      })
  }),
  Skill.make("look", {
    description: "Looks at a row",
    effects: "read",
    input: Schema.Struct({ row: Schema.Finite }),
    execute: ({ row }) => Effect.succeed(`row ${row} is free`)
  }),
  Skill.make("pay", {
    description: "Pays",
    input: Schema.Struct({
      to: Schema.String.annotate({ description: "who gets the money" }),
      amount: Schema.Finite,
      currency: Schema.optionalKey(Schema.Literals(["EUR", "USD"]))
    }),
    execute: ({ amount, to }) => Effect.sync(() => (counts.paid++, `paid ${amount} to ${to}`))
  }),
  Skill.make("wait", {
    description: "Waits",
    effects: "read",
    input: Schema.Struct({}),
    execute: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void counts.stopped++))
  }),
  Skill.make("hang", { description: "Hangs", effects: "read", input: Schema.Struct({}), execute: () => hang(counts) }),
  Skill.make("map", {
    description: "Shows the seats",
    effects: "read",
    input: Schema.Struct({}),
    execute: () =>
      Effect.succeed([
        Content.text("the map"),
        Object.freeze({ ...Content.uiResource("ui://seats/map"), server: "seats" })
      ])
  })
]

// ---------------------------------------------------------------- the site

const helper = Agent.make({
  name: "helper",
  description: "Helps",
  instructions: "You help.",
  model: "scripted",
  skills: "all"
})
const clerk = Agent.make({
  name: "clerk",
  instructions: "You book and pay.",
  model: "scripted",
  skills: "all",
  agents: [helper]
})

const agents = [
  clerk,
  helper,
  ...Studio.variants(clerk, { models: ["scripted", "other"], dialects: ["blocks", "tools"] })
]

const codeOf = (counts: Counts) => Code.agent({ skills: skillsOf(counts) })

const providerOf = (requests: Array<Provider.Request>): Provider.ProviderShape => {
  const quick = MockProvider.make().keepCalls(false).withChunking(6).onCall(replyTo)
  const slow = MockProvider.make().keepCalls(false).withChunking(3).withDelay({ between: 40 }).onCall(replyTo)
  return {
    name: "scripted",
    stream: (request) => {
      requests.push(request)
      const isSlow = request.messages.some((message) => /slowly/.test(Message.text(message)))
      return (isSlow ? slow : quick).stream(request)
    }
  }
}

const layerOf = (folder: string, counts: Counts, requests: Array<Provider.Request>) => {
  const file = storeIn(folder)
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      Layer.succeed(Provider.Provider, providerOf(requests)),
      ProtocolRegistry.layer(),
      Policy.layerRules({ confirm: [{ name: "pay" }] })
    ]),
    Layer.provideMerge(
      Layer.mergeAll(
        SkillRegistry.layer(...skillsOf(counts)),
        SqlRunStore.layerSqlite(file),
        SqlMediaStore.layerSqlite(file)
      )
    )
  )
  const pages = { readPage: (_: string, uri: string) => Effect.succeed(pageOf(uri)) }
  const studio = Studio.layer({ agents: [...agents, codeOf(counts)], pages, scenarios: scenariosIn(folder) })
  return Layer.provideMerge(serve(studio), Layer.merge(kernel, Code.layerQuickJs()))
}

/** Runs a body beside a studio. */
export const withSite = <A>(folder: string, body: (site: Site) => Promise<A>): Promise<A> => {
  const counts: Counts = { paid: 0, booked: 0, stopped: 0, processes: new Set() }
  const requests: Array<Provider.Request> = []
  return Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const context = yield* Layer.build(layerOf(folder, counts, requests))
        const store = Context.get(context, RunStore.RunStore)
        const run = Effect.runPromiseWith(context)
        const recordsOf = (runId: string) => run(Stream.runCollect(store.read(runId)))
        return yield* Effect.promise(() =>
          body({
            url: urlIn(context),
            counts,
            submit: (question) => run(Kernel.submit(clerk, question)),
            submitCode: (code) => run(Kernel.submit(codeOf(counts), JSON.stringify({ code }))),
            recordsOf,
            stateOf: async (runId) => RunState.fold(await recordsOf(runId)),
            below: async (runId) =>
              (await run(store.list({ rootRunId: runId }))).flatMap((head) => (head.runId === runId ? [] : head.runId)),
            requests: () => requests
          })
        )
      })
    )
  )
}
