/** A studio with runs of an office that pays invoices: agents that work at once, approvals, failures, and answers. */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import {
  Agent,
  Kernel,
  KernelError,
  Message,
  Model,
  Policy,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "../src/index.ts"
import { SqlMediaStore, SqlRunStore } from "../src/sql/index.ts"
import { ChatPage, Studio } from "../src/studio/index.ts"
import { MockProvider } from "../src/testing/index.ts"
import { until } from "./studioBrowser.ts"
import { serve, urlIn } from "./studioServer.ts"

const command = (name: string, input: unknown) =>
  `<block type="command" name="${name}">${JSON.stringify(input)}</block>`
const final = (text: string) => `<block type="final">${text}</block>`
const isResult = (text: string) => /type="(result|error)"/.test(text)

/** The question of the run that the pictures show. */
export const invoice = "Please pay the attached invoice if it matches an order."

const guide = `## How a run is stored

A run is the **fold of its journal**. Every phase appends *one record*:

| phase | stored as |
| --- | --- |
| model | \`model_completed\` |
| call | \`tool_call_completed\` |

\`\`\`ts
const state = RunState.fold(records)
// the same state, at every revision
\`\`\`

1. Read the [guide](https://example.com/guide).
2. Fork at any revision.`

const seatAnswer = (result: string): string =>
  result.includes("booked") ? "The seat is **booked**." : "The seat is taken."

/** Replies of the agent that pays. */
const coordinate = (question: string, results: number, last: string): string => {
  if (/at length/.test(question)) return final(`${guide}\n\n${"And so on. ".repeat(400)}`)
  if (/stored/.test(question)) return final(guide)
  if (/seats/.test(question)) return results === 0 ? command("book", { seat: "12A" }) : final(seatAnswer(last))
  if (results > 0 && !/invoice/.test(question)) return final("That is done.")
  if (!/invoice/.test(question)) {
    return command("pay", { amount: 80, currency: "EUR", to: /PayPal/.test(question) ? "PayPaI" : "Nordlys AS" })
  }
  if (results === 0) {
    return `I read the invoice and look for its order.\n${command("extractor", "Read the invoice.")}${command("matcher", "Find the order.")}`
  }
  if (results < 3) {
    const order = { amount: 4200, currency: "EUR", to: "NO93 8601 1117 947", file: "invoice\u202efdp.exe" }
    return `The invoice names order **PO-7731**. I compared it with the order:\n${command("pay", order)}`
  }
  return final("The invoice of **Nordlys AS** is paid: 4,200.00 EUR for order `PO-7731`.")
}

const replyTo = ({ messages }: Provider.Request): string => {
  const system = Message.text(messages.find(({ role }) => role === "system") ?? Message.user(""))
  const texts = messages.filter(({ role }) => role !== "system").map((message) => Message.text(message))
  const results = texts.filter(isResult).length
  if (system.includes("read invoices")) {
    return final("Supplier Nordlys AS, order PO-7731, 4,200.00 EUR, due on 1 December.")
  }
  if (system.includes("find orders")) {
    return results === 0 ? command("find_order", { order: "PO-7731" }) : final("PO-7731 of Nordlys AS, 4,200.00.")
  }
  return coordinate(texts.find((text) => !isResult(text)) ?? "", results, texts.at(-1) ?? "")
}

const failing: ReadonlyArray<readonly [RegExp, KernelError.ProviderError]> = [
  [
    /weather/,
    new KernelError.ProviderError({
      provider: "anthropic",
      reason: "rate_limited",
      detail: "status 429",
      vendor: { message: "This request would exceed your organization's rate limit of 50 requests per minute." },
      attempts: 4
    })
  ],
  [
    /poem/,
    new KernelError.ProviderError({
      provider: "anthropic",
      reason: "authentication",
      detail: "status 401",
      vendor: { message: "invalid x-api-key" }
    })
  ]
]

const provider: Provider.ProviderShape = (() => {
  const usage = (request: Provider.Request) => ({
    inputTokens: { total: 900 + 400 * request.messages.length, cacheRead: 600 },
    outputTokens: { total: 180 }
  })
  const quick = MockProvider.make().keepCalls(false).withChunking(40).withDelay({ first: 90, between: 8 })
  const mock = quick.onCall((request) => ({ text: replyTo(request), usage: usage(request) }))
  const slow = MockProvider.make().keepCalls(false).withChunking(20).withDelay({ first: 380, between: 30 })
  const slowMock = slow.onCall((request) => ({ text: replyTo(request), usage: usage(request) }))
  const slowest = MockProvider.make().keepCalls(false).withChunking(12).withDelay({ between: 300 }).onCall(replyTo)
  return {
    name: "anthropic",
    stream: (request) => {
      const texts = request.messages.map((message) => Message.text(message)).join("\n")
      const failure = failing.find(([words]) => words.test(texts))
      if (failure !== undefined) return Stream.fail(failure[1])
      if (/slowly|at length/.test(texts)) return slowest.stream(request)
      return (/invoice/.test(texts) ? slowMock : mock).stream(request)
    }
  }
})()

const skills = [
  Skill.make("find_order", {
    description: "Finds an order",
    effects: "read",
    input: Schema.Struct({ order: Schema.String }),
    execute: ({ order }) => Effect.delay(Effect.succeed([{ order, supplier: "Nordlys AS", amount: 4200 }]), 412)
  }),
  Skill.make("pay", {
    description: "Pays a supplier",
    input: Schema.Struct({
      amount: Schema.Finite,
      currency: Schema.Literals(["EUR", "NOK"]),
      to: Schema.String,
      file: Schema.optionalKey(Schema.String)
    }),
    execute: ({ amount, to }) => Effect.delay(Effect.succeed(`paid ${amount} to ${to}`), 120)
  }),
  Skill.make("book", {
    description: "Books a seat",
    effects: "read",
    input: Schema.Struct({ seat: Schema.String }),
    execute: ({ seat }) => Effect.delay(Effect.fail(`seat taken: ${seat}`), 60)
  })
]

/** The models that the playground offers. */
const models = ["anthropic/claude-opus-5-5", Model.claudeHaiku55] as const

const part = (name: string, instructions: string) =>
  Agent.make({ name, description: instructions, instructions, model: "claude-sonnet-4", skills: ["find_order"] })
const coordinator = Agent.make({
  name: "coordinator",
  version: "4",
  description: "Pays invoices that match an order, and asks before money leaves.",
  instructions: "You pay invoices.",
  model: "claude-sonnet-4",
  skills: "all",
  agents: [part("extractor", "You read invoices."), part("matcher", "You find orders.")]
})

const starters = ["Are seats free?", invoice]

const layerOf = (file: string, evaluations: string) => {
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      Layer.succeed(Provider.Provider, provider),
      ProtocolRegistry.layer(),
      Policy.layerRules({ confirm: [{ name: "pay" }] })
    ]),
    Layer.provideMerge(
      Layer.mergeAll(SkillRegistry.layer(...skills), SqlRunStore.layerSqlite(file), SqlMediaStore.layerSqlite(file))
    )
  )
  const chat = ChatPage.layer({
    agents: [coordinator],
    evaluations,
    name: "Support desk",
    starters,
    consent: "Messages are stored to answer them.",
    style:
      ":root { --accent: light-dark(oklch(0.45 0.12 155), oklch(0.78 0.14 155)); --accent-back: light-dark(oklch(0.955 0.025 155), oklch(0.29 0.05 155)) }",
    embedIn: ["http://localhost:*"]
  })
  const studio = Studio.layer({ agents: [coordinator], evaluations, models, starters: { coordinator: starters } })
  return Layer.provideMerge(serve(Layer.merge(studio, chat)), kernel)
}

/** The questions of the office, by what their runs show. */
export const officeQuestions = {
  guide: "What is stored of a run?",
  small: "Please pay Nordlys 80 EUR",
  poem: "Write a poem about fibers",
  limited: "What is the weather in Oslo?",
  seats: "Are seats free?",
  invoice
} as const

export type Ids = Readonly<Partial<Record<keyof typeof officeQuestions, string>>>

/** Stores a run for each question, and waits until all of them rest. */
export const submitAll = async (office: Office, questions: Readonly<Record<string, string>>): Promise<Ids> => {
  const ids: Record<string, string> = {}
  for (const [name, question] of Object.entries(questions)) {
    ids[name] = await office.submit(question, { id: "ada", tenant: "acme" })
  }
  const isResting = async (id: string) => {
    const head = await office.headOf(id)
    return head !== undefined && head.status.type !== "queued" && head.status.type !== "running"
  }
  for (const id of Object.values(ids)) await until(() => isResting(id))
  return ids
}

/** Returns the ids of the runs that answer the questions of the office, which are asked if they were not yet. */
export const idsOf = async (office: Office): Promise<Ids> => {
  const ids: Ids = Object.fromEntries(
    await Promise.all(
      Object.entries(officeQuestions).map(async ([name, question]) => [name, await office.find(question)] as const)
    )
  )
  return ids.guide === undefined ? submitAll(office, officeQuestions) : ids
}

/** A studio that runs. */
export interface Office {
  readonly url: string
  /** The file of its store. */
  readonly store: string
  /** The folder of the reports of evaluations. */
  readonly evaluations: string
  /** Stores a run. The studio's worker takes it up. */
  readonly submit: (question: string, caller?: { readonly id: string; readonly tenant?: string }) => Promise<string>
  readonly headOf: (runId: string) => Promise<RunStore.RunHead | undefined>
  /** Returns the id of the run of a question. */
  readonly find: (question: string) => Promise<string | undefined>
}

/** Runs a body beside the studio of the office. */
export const withOffice = <A>(folder: string, body: (office: Office) => Promise<A>): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const context = yield* Layer.build(layerOf(`${folder}/office.db`, `${folder}/evals`))
        const run = Effect.runPromiseWith(context)
        const store = Context.get(context, RunStore.RunStore)
        return yield* Effect.promise(() =>
          body({
            store: `${folder}/office.db`,
            evaluations: `${folder}/evals`,
            url: urlIn(context),
            submit: (question, caller) =>
              run(Kernel.submit(coordinator, question, caller === undefined ? {} : { caller })),
            find: async (question) => (await run(store.list({ search: question, roots: true }))).at(-1)?.runId,
            headOf: async (runId) => (await run(store.list({ rootRunId: runId, roots: true })))[0]
          })
        )
      })
    )
  )
