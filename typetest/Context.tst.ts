/**
 * What the compiler knows of the context of runs: who must give it, and who reads it.
 */
import { Effect, Schema, Stream } from "effect"
import { Agent, Chat, Hooks, Kernel, type KernelError, Middleware, Policy, Skill } from "kernai"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

const User = Schema.Struct({ userId: Schema.String, since: Schema.Date })
type User = typeof User.Type
const ada: User = { userId: "ada", since: new Date(0) }

const desk = Agent.make({
  context: User,
  instructions: ({ since, userId }) => `You help ${userId}, a customer since ${since.getUTCFullYear()}.`,
  model: "m"
})
yes<Equal<typeof desk, Agent.Agent<string, never, never, User>>>()
const plain = Agent.make({ instructions: "", model: "m" })

// ---------------------------------------------------------------- giving it

export const given = [
  Kernel.run(desk, "?", { context: ada }),
  Kernel.stream(desk, "?", { context: ada, runId: "run" }),
  Kernel.submit(desk, "?", { context: ada }),
  Chat.chat(desk, "?", { context: ada }),
  Chat.chatStream(desk, "?", { context: ada }),
  Chat.chat(plain, "?"),
  Kernel.run(plain, "?"),
  Kernel.run(plain, "?", { context: { any: [1] } })
]
export const refused = [
  // @ts-expect-error its runs need options
  Kernel.run(desk, "?"),
  // @ts-expect-error its runs need a context
  Kernel.run(desk, "?", {}),
  // @ts-expect-error its runs need a context
  Kernel.stream(desk, "?", { runId: "run" }),
  // @ts-expect-error its runs need a context
  Kernel.submit(desk, "?"),
  // @ts-expect-error a context of another type
  Kernel.run(desk, "?", { context: { userId: "ada" } }),
  // @ts-expect-error its runs need a context
  Chat.chat(desk, "?", {})
]
// A stored run has its context.
export const resumed = [Kernel.resume(desk, "run"), Chat.resume(desk, "run")]
// @ts-expect-error an agent that needs a context is not one that needs none
export const assumed: Agent.Agent = desk

// ---------------------------------------------------------------- reading it

export const hooks = Hooks.layer({
  onTurnStarted: (args) =>
    Effect.asVoid(Effect.map(Agent.contextOf(desk, args), (user) => yes<Equal<typeof user, User>>()))
})
export const policy = Policy.layer((call) =>
  Effect.map(Agent.contextOf(desk, call), ({ userId }) =>
    userId === "ada" ? Policy.allowed : Policy.denied("not yours")
  )
)
export const middleware = Middleware.layer({
  callModel: (call, next) =>
    Stream.unwrap(
      Effect.as(
        Effect.orDie(Effect.map(Agent.contextOf(desk, call), (user) => yes<Equal<typeof user, User>>())),
        next(call)
      )
    )
})
// A skill that its agent lists reads it by the schema.
export const whoami = Skill.make("whoami", {
  description: "",
  input: Schema.Struct({}),
  execute: (_, scope) => Effect.map(Agent.contextOf(User, scope), ({ userId }) => userId)
})
export const read = Agent.contextOf(desk, { context: {} })
yes<Equal<typeof read, Effect.Effect<User, KernelError.AgentConfigInvalid>>>()
export const untyped = Agent.contextOf(plain, { context: {} })
yes<Equal<Effect.Success<typeof untyped>, { readonly [key: string]: Schema.Json }>>()

// ---------------------------------------------------------------- several agents

export const lead = Agent.make({ context: User, instructions: "", model: "m", agents: [desk, plain, "other"] })
yes<Equal<typeof lead, Agent.Agent<string, never, never, User>>>()
// @ts-expect-error it has no context to give to its agent
Agent.make({ instructions: "", model: "m", agents: [desk] })
// @ts-expect-error it has another context than its agent reads
Agent.make({ context: Schema.Struct({ id: Schema.Int }), instructions: "", model: "m", handoffs: [desk] })
