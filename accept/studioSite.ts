/**
 * A studio with a scripted agent, on a store in a file, for browsers.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import {
  Agent,
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
import { SqlMediaStore, SqlRunStore } from "../src/sql/index.ts"
import { Studio } from "../src/studio/index.ts"
import { MockProvider } from "../src/testing/index.ts"
import { createServer } from "node:http"

/** A studio that runs, and what proves its screens. */
export interface Site {
  readonly url: string
  /** Stores a run of the agent. The studio's worker takes it up. */
  readonly submit: (question: string) => Promise<string>
  readonly stateOf: (runId: string) => Promise<RunState.RunState | undefined>
  /** How often the skill `pay` ran. */
  readonly paid: () => number
  readonly stopped: () => number
}

const command = (name: string, input: unknown) =>
  `<block type="command" name="${name}">${JSON.stringify(input)}</block>`
const final = (text: string) => `<block type="final">${text}</block>`

/** Text that would act if a page took it as HTML. */
export const hostile = `<script>window.hacked=1</script><img src=x onerror="window.hacked=1"><a href="javascript:window.hacked=1">x</a>`

/** A reply to the last message: a call for a question, an answer for a result. */
const replyTo = (text: string): string => {
  if (/type="(result|error)"/.test(text)) return final("That is all.")
  if (/seat/.test(text)) return `Let me look.\n${command("book", { seat: "12A" })}`
  if (/pay/i.test(text)) return `I pay him.\n${command("pay", { to: "Eva", amount: 12 })}`
  if (/wait/.test(text)) return command("wait", {})
  if (/hostile/.test(text)) return final(hostile)
  return final("A fiber is a light thread of execution, managed by the runtime and not by the system.")
}

/** Runs a body beside a studio. */
export const withSite = <A>(folder: string, body: (site: Site) => Promise<A>): Promise<A> => {
  const counts = { paid: 0, stopped: 0 }
  const skills = [
    Skill.make("book", {
      description: "Books a seat",
      effects: "read",
      input: Schema.Struct({ seat: Schema.String }),
      execute: () => Effect.fail("seat taken")
    }),
    Skill.make("pay", {
      description: "Pays",
      input: Schema.Struct({ to: Schema.String, amount: Schema.Finite }),
      execute: ({ amount, to }) => Effect.sync(() => (counts.paid++, `paid ${amount} to ${to}`))
    }),
    Skill.make("wait", {
      description: "Waits",
      effects: "read",
      input: Schema.Struct({}),
      execute: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void counts.stopped++))
    })
  ]
  const agent = Agent.make({ name: "clerk", instructions: "You book and pay.", model: "scripted", skills: "all" })
  const model = MockProvider.make()
    .withChunking(6)
    .onCall(({ messages }) => replyTo(Message.text(messages.at(-1) ?? Message.user(""))))
  const file = `${folder}/runs.db`
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      Layer.succeed(Provider.Provider, model),
      SkillRegistry.layer(...skills),
      ProtocolRegistry.layer(),
      Policy.layerRules({ confirm: [{ tool: "pay" }] })
    ]),
    Layer.provideMerge(Layer.merge(SqlRunStore.layerSqlite(file), SqlMediaStore.layerSqlite(file)))
  )
  const server = HttpRouter.serve(Studio.layer({ agents: [agent] }), {
    disableLogger: true,
    disableListenLog: true,
    routerConfig: { maxParamLength: 1_024 }
  }).pipe(
    Layer.provideMerge(kernel),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 }))
  )
  return Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const context = yield* Layer.build(server)
        const { address } = Context.get(context, HttpServer.HttpServer)
        const origin = `http://127.0.0.1:${"port" in address ? address.port : 0}`
        const store = Context.get(context, RunStore.RunStore)
        const run = Effect.runPromiseWith(context)
        return yield* Effect.promise(() =>
          body({
            url: Studio.urlOf(Context.get(context, Studio.Studio), origin),
            submit: (question) => run(Kernel.submit(agent, question)),
            stateOf: (runId) => run(Effect.map(Stream.runCollect(store.read(runId)), RunState.fold)),
            paid: () => counts.paid,
            stopped: () => counts.stopped
          })
        )
      })
    )
  )
}
