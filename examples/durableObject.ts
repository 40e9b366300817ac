/**
 * A Cloudflare Worker: each customer has a Durable Object that runs an agent and keeps its runs in the SQLite of the
 * object. A refund waits for a person, while the object is evicted and costs nothing.
 *
 * POST /<customer>/runs with a text starts a run, POST /<customer>/runs/<id>/approve continues it, GET lists its runs.
 * `docs/recipes/deploy.md` shows the configuration.
 */
import { Effect, ManagedRuntime, Schema } from "effect"
import { Agent, Kernel, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { layer, type Sql } from "./durableObjectRunStore.ts"

const refund = Skill.make("refund", {
  description: "Refunds an order",
  input: Schema.Struct({ order: Schema.String }),
  approval: "always",
  execute: ({ order }) => Effect.succeed(`refunded ${order}`)
})
const desk = Agent.make({ name: "desk", instructions: "You help customers.", model: "scripted", skills: [refund] })

// A model that asks for a refund first, whichever instance of the object it is in. Yours is a layer of kernai/provider.
const model = MockProvider.make().onCall(({ messages }) =>
  messages.some(({ role }) => role === "assistant")
    ? { text: `<block type="final">Order 7 is refunded.</block>` }
    : { text: `<block type="command" name="refund">{"order": "7"}</block>` }
)

const start = (input: string) =>
  Effect.match(Kernel.run(desk, input), {
    onSuccess: ({ text }) => ({ text }),
    onFailure: (error) => ({ waits: error.message })
  })

const approve = Effect.fnUntraced(function* (runId: string) {
  const answers = (yield* Kernel.questions(runId)).map(({ callId }) => ({ callId, approved: true, by: "Ada" }))
  const { text } = yield* Kernel.resume(desk, runId, { answers })
  return { text }
})

const list = Effect.gen(function* () {
  const store = yield* RunStore.RunStore
  return (yield* store.list()).map(({ runId, status }) => ({ runId, status: status.type }))
})

/** The object of a customer. Its memory may be gone between two requests; its database stays. */
export class Desk {
  readonly #runtime
  constructor(state: { readonly storage: { readonly sql: Sql } }) {
    const { sql } = state.storage
    this.#runtime = ManagedRuntime.make(Kernel.layerWith({ provider: MockProvider.layerOf(model), store: layer(sql) }))
  }
  async fetch(request: Request): Promise<Response> {
    const [, , , runId, verb] = new URL(request.url).pathname.split("/")
    if (request.method === "GET") return Response.json(await this.#runtime.runPromise(list))
    if (verb === "approve" && runId !== undefined) return Response.json(await this.#runtime.runPromise(approve(runId)))
    return Response.json(await this.#runtime.runPromise(start(await request.text())))
  }
}

/** What the Worker needs of its binding to the objects. */
interface Env {
  readonly DESKS: {
    readonly idFromName: (name: string) => unknown
    readonly get: (id: unknown) => { readonly fetch: (request: Request) => Promise<Response> }
  }
}

export default {
  fetch: (request: Request, env: Env): Promise<Response> => {
    const [, customer = ""] = new URL(request.url).pathname.split("/")
    return env.DESKS.get(env.DESKS.idFromName(customer)).fetch(request)
  }
}
