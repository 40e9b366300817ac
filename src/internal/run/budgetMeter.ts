/**
 * Makes model calls under shared budgets: reserves before a call, renews while it lasts, and settles what it used.
 */

import type * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Shared, Spent } from "../../Budget.ts"
import * as Budget from "../../Budget.ts"
import type { BudgetStoreShape, Limited } from "../../BudgetStore.ts"
import { type BudgetExhaustedError, ExtensionFailed } from "../../KernelError.ts"
import { inTime, logIgnored } from "../../kit/foreignCode.ts"
import { randomId } from "../../kit/randomId.ts"
import { utf8Length } from "../../kit/text.ts"
import type { Middleware, ModelCall } from "../../Middleware.ts"
import type { StreamPart } from "../../StreamPart.ts"
import * as Usage from "../../Usage.ts"
import { estimate, ofTools } from "../prompt/tokenEstimate.ts"

/** Returns the middleware that holds model calls to shared budgets. */
export const meter = ({ select, store }: Limited): Middleware => ({
  callModel: (call, next) => {
    const budgets = select(call).toSorted(byAccount)
    if (budgets.length === 0) return next(call)
    return Stream.unwrap(
      Effect.map(reserved(store, budgets, call), (usage) =>
        Stream.mapArray(next(call), (parts) => {
          usage.take(parts)
          return parts
        })
      )
    )
  }
})

/** Reserves in one order everywhere, so that two calls never wait for each other. */
const byAccount = (a: Shared, b: Shared): number => (Budget.accountId(a) < Budget.accountId(b) ? -1 : 1)

/** Reserves under all budgets until the scope closes, and returns the usage that is settled then. */
const reserved = Effect.fnUntraced(function* (
  store: BudgetStoreShape,
  budgets: ReadonlyArray<Shared>,
  call: ModelCall
): Effect.fn.Return<CallUsage, BudgetExhaustedError | ExtensionFailed, Scope.Scope> {
  const usage = new CallUsage(call)
  const amount = usage.atMost()
  for (const budget of budgets) {
    if (budget.costUsd !== undefined && call.request.model.price === undefined) {
      const detail = `the model '${call.request.model.id}' has no price, which a budget in USD needs`
      return yield* new ExtensionFailed({ extension: nameOf(budget), detail })
    }
    const id = `${call.runId}/${randomId(yield* Random.Random, 2)}`
    yield* Effect.addFinalizer(() => settled(store, budget, id, usage))
    yield* waiting(store, budget, { id, amount, lease })
    yield* Effect.forkScoped(renewed(store, budget, id))
  }
  return usage
})

/** Reserves an amount, once other calls leave room for it. */
const waiting = Effect.fnUntraced(function* (
  store: BudgetStoreShape,
  budget: Shared,
  reservation: Parameters<BudgetStoreShape["reserve"]>[1]
): Effect.fn.Return<void, BudgetExhaustedError | ExtensionFailed> {
  const attempt = store.reserve(budget, reservation).pipe(
    Effect.retry({ while: ({ _tag }) => _tag === "StoreError", times: 2, schedule: Schedule.spaced("200 millis") }),
    Effect.catchTag("StoreError", ({ message }) =>
      Effect.fail(new ExtensionFailed({ extension: nameOf(budget), detail: message }))
    )
  )
  let pause = 50
  while (!(yield* attempt)) {
    yield* Effect.sleep(pause)
    pause = Math.min(2 * pause, 1_000)
  }
})

const renewed = (store: BudgetStoreShape, budget: Shared, id: string): Effect.Effect<never> =>
  Effect.forever(
    Effect.andThen(
      Effect.sleep(Duration.divideUnsafe(lease, 3)),
      Effect.catchCause(store.renew(budget, id, lease), logIgnored("a reservation was not renewed"))
    )
  )

/** Settles a reservation. A store that fails loses the usage of this call, and the reservation expires. */
const settled = (store: BudgetStoreShape, budget: Shared, id: string, usage: CallUsage): Effect.Effect<void> =>
  inTime(
    Effect.suspend(() => store.settle(budget, id, usage.used())).pipe(
      Effect.retry({ times: 3, schedule: Schedule.spaced("200 millis") }),
      Effect.catchCause(logIgnored(`the usage of a call was not counted under ${nameOf(budget)}`))
    ),
    lease,
    () => Effect.void
  )

const nameOf = ({ key }: Shared): string => `the budget '${key}'`

/** How long the reservation of a process lasts after it died. */
const lease = Duration.seconds(30)

/** Output tokens that are reserved for a call without a limit of its own. */
const usualOutput = 4_096

/** The usage of a model call, read from its reply. */
class CallUsage {
  readonly #call: ModelCall
  readonly #hosted: Array<{ readonly name: string }> = []
  #usage: Usage.Usage | undefined
  /** The bytes of a reply that has not ended. */
  #bytes = 0

  constructor(call: ModelCall) {
    this.#call = call
  }

  take(parts: Arr.NonEmptyReadonlyArray<StreamPart>): void {
    for (const part of parts) {
      if (part.type === "finish") this.#usage = Usage.fromAi(part.usage)
      else if (part.type === "tool-call" && part.providerExecuted === true) this.#hosted.push({ name: part.name })
      else if ("delta" in part && typeof part.delta === "string") this.#bytes += utf8Length(part.delta)
    }
  }

  /** Returns what the call may use, by its prompt and the limit of its reply. */
  atMost(): Spent {
    return this.#spent({
      ...Usage.zero,
      inputTokens: this.#prompt(),
      outputTokens: this.#call.request.generation.maxTokens ?? usualOutput
    })
  }

  /** Returns what the call used. Of a reply without an end, it is estimated. */
  used(): Spent {
    if (this.#usage !== undefined) return this.#spent(this.#usage)
    if (this.#bytes === 0) return Budget.nothing
    return this.#spent({ ...Usage.zero, inputTokens: this.#prompt(), outputTokens: Math.ceil(this.#bytes / 4) })
  }

  #prompt(): number {
    const { messages, tools } = this.#call.request
    return messages.reduce((sum, message) => sum + estimate(message), 0) + ofTools(tools)
  }

  #spent(usage: Usage.Usage): Spent {
    const { price } = this.#call.request.model
    return {
      tokens: Usage.total(usage),
      costUsd: Usage.addCost(Usage.costOf(usage, price), Usage.hostedCost(this.#hosted, price)) ?? 0
    }
  }
}
