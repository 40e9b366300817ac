/** What hooks tell of the services they need. */
import { Context, Effect, type Layer } from "effect"
import { Hooks } from "kernai"

type Equals<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const check = <T extends true>(): T | undefined => undefined

class Audit extends Context.Service<Audit, { readonly note: (text: string) => Effect.Effect<void> }>()("Audit") {}

const observing = Hooks.layer({ onTurnCompleted: () => Audit.use((audit) => audit.note("turn")) })
check<Equals<typeof observing, Layer.Layer<never, never, Audit>>>()

// A hook whose answers differ in shape needs nothing either, when it needs nothing.
const rewriting = Hooks.layer({
  onToolCallStarted: ({ call }) =>
    Effect.succeed(call.name === "a" ? { value: { _tag: "Rewrite" as const, input: { b: 1 } } } : {})
})
check<Equals<typeof rewriting, Layer.Layer<never, never, never>>>()

const answering = Hooks.layer({
  onTurnStarted: () => Effect.succeed(Hooks.pause("look", { at: 1 })),
  onToolCallStarted: Effect.fnUntraced(function* ({ call }) {
    yield* Audit.use((audit) => audit.note("call"))
    if (call.name === "a") return Hooks.rewrite({ b: 1 })
    return call.name === "b" ? Hooks.skip("not now") : {}
  })
})
check<Equals<typeof answering, Layer.Layer<never, never, Audit>>>()
// @ts-expect-error a call is not rewritten when a turn begins
Hooks.layer({ onTurnStarted: () => Effect.succeed(Hooks.rewrite({})) })

const asking = Hooks.layer({
  onToolCallStarted: ({ call }) =>
    Effect.as(
      Audit.use((audit) => audit.note("call")),
      call.name === "a" ? { value: { _tag: "Rewrite" as const, input: { b: 1 } } } : {}
    )
})
check<Equals<typeof asking, Layer.Layer<never, never, Audit>>>()

class Ledger extends Context.Service<Ledger, { readonly book: (amount: number) => Effect.Effect<void> }>()("Ledger") {}

// Each hook has needs and failures of its own.
const several = Hooks.layer({
  onTurnStarted: ({ state }) => Audit.use((audit) => audit.note(state.runId)),
  onToolCallStarted: ({ call }) => Effect.andThen(Ledger, call.name === "a" ? Effect.fail("a") : Effect.void),
  onTurnCompleted: () => Effect.fail(1)
})
check<Equals<typeof several, Layer.Layer<never, never, Audit | Ledger>>>()
// @ts-expect-error no hook has this name
Hooks.layer({ onTurnStarted: () => Effect.void, onTurnStart: () => Effect.void })
const none = Hooks.layer({})
check<Equals<typeof none, Layer.Layer<never, never, never>>>()
const given = <R>(hooks: Hooks.Given<unknown, R>) => Hooks.layer(hooks)
check<Equals<ReturnType<typeof given<Audit>>, Layer.Layer<never, never, Audit>>>()

// A hook that may be undefined may be left out, and needs what it needs.
const maybe = (listens: boolean) =>
  Hooks.layer({
    onTurnCompleted: listens ? () => Audit.use((audit) => audit.note("turn")) : undefined,
    onPause: undefined
  })
check<Equals<ReturnType<typeof maybe>, Layer.Layer<never, never, Audit>>>()
