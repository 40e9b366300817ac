/**
 * What is inferred of agents that call each other, and of skills given as values.
 */
import { Context, Effect, Schema, type Stream } from "effect"
import { Agent, Kernel, type RunEvent, Skill } from "kernai"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

class CurrentUser extends Context.Service<CurrentUser, { readonly name: string }>()("type/CurrentUser") {}
class Ledger extends Context.Service<Ledger, { readonly total: number }>()("type/Ledger") {}

const total = Skill.make("total", {
  description: "",
  input: Schema.Struct({ month: Schema.Int }),
  execute: () => Effect.map(Ledger, (ledger) => ledger.total)
})
const whoami = Skill.make("whoami", {
  description: "",
  input: Schema.Struct({}),
  execute: () => Effect.map(CurrentUser, (user) => user.name)
})

const billing = Agent.make({ name: "billing", instructions: "", model: "m", skills: [total] })
const refunds = Agent.make({
  name: "refunds",
  instructions: Effect.map(CurrentUser, (user) => `You help ${user.name}.`),
  model: "m"
})
const desk = Agent.make({ name: "desk", instructions: "", model: "m", skills: [whoami], agents: [billing, refunds] })

// ---------------------------------------------------------------- services

// What skills and agents need, the run needs: forgetting it does not compile.
export const run = Kernel.run(desk, "?")
yes<Equal<Effect.Services<typeof run>, Kernel.Kernel | CurrentUser | Ledger>>()
export const provided = run.pipe(
  Effect.provideService(CurrentUser, { name: "Ada" }),
  Effect.provideService(Ledger, { total: 7 })
)
yes<Equal<Effect.Services<typeof provided>, Kernel.Kernel>>()
export const resumed = Kernel.resume(desk, "run")
yes<Equal<Effect.Services<typeof resumed>, Kernel.Kernel | CurrentUser | Ledger>>()
type WithoutUser = Effect.Effect<unknown, unknown, Kernel.Kernel | Ledger>
yes<Equal<typeof run extends WithoutUser ? true : false, false>>()

// A hand-over needs what the other agent needs; a name needs nothing.
const front = Agent.make({ name: "front", instructions: "", model: "m", handoffs: [refunds, "front"] })
yes<Equal<typeof front, Agent.Agent<string, never, CurrentUser>>>()

// The agents it calls and those it hands over to may answer by different types.
const audit = Agent.make({
  name: "audit",
  instructions: "",
  model: "m",
  skills: [total],
  output: Schema.Struct({ fine: Schema.Boolean })
})
const reception = Agent.make({ name: "reception", instructions: "", model: "m", agents: [refunds], handoffs: [audit] })
yes<Equal<typeof reception, Agent.Agent<string, typeof total, CurrentUser | Ledger>>>()

// ---------------------------------------------------------------- events

type Heard<A> = A extends Stream.Stream<infer E, unknown, unknown> ? E : never
export const events = Kernel.stream(desk, "?")
type Result = Extract<Heard<typeof events>, { readonly type: "skill_result" }>

// The events of a run include those of its agents, each with its own types.
yes<Equal<Result["skill"], "whoami" | "total">>()
yes<Equal<Extract<Result, { readonly skill: "total" }>["output"], number>>()
yes<Equal<Extract<Result, { readonly skill: "whoami" }>["output"], string>>()

const mixed = Agent.make({ name: "mixed", instructions: "", model: "m", skills: [whoami, "mcp_files__read"] })
export const mixedEvents = Kernel.stream(mixed, "?")
type Mixed = Extract<Heard<typeof mixedEvents>, { readonly type: "skill_result" }>
yes<Equal<Extract<Mixed, { readonly skill: "whoami" }>["output"], string>>()
yes<Equal<Extract<Mixed, { readonly skill: "mcp_files__read" }>["output"], unknown>>()

// An agent that may call any skill has the events of any.
const any = Agent.make({ name: "any", instructions: "", model: "m", skills: "all", agents: [billing] })
export const anyEvents = Kernel.stream(any, "?")
yes<Equal<Extract<Heard<typeof anyEvents>, { readonly type: "skill_result" }>["skill"], string>>()

export const isChanged = (event: RunEvent.RunEvent): string => (event.type === "agent_changed" ? event.to : "")
