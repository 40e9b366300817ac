/**
 * Begins a run in a store: here and now, or by whoever finds it there.
 */

import * as Effect from "effect/Effect"
import * as Kernel from "../../Kernel.ts"
import { follow, type Options as FollowOptions } from "../followRun.ts"
import { readImage, tellBlind } from "../live.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import * as Actor from "./actor.ts"

/** What is asked, whom, and where it is kept. */
export interface Options extends Pick<FollowOptions, "form" | "colors"> {
  readonly store: string
  readonly actor: Actor.Actor
  readonly question: string
  /** Pictures to send with it, which are kept as well: files inside `root`. */
  readonly images: ReadonlyArray<string>
  readonly root: string
  /** Only store it. */
  readonly detach: boolean
}

/** Stores a run under the agent `agent`, and follows it unless it is left to a worker. */
export const begin = Effect.fnUntraced(function* (options: Options) {
  const images = yield* Effect.forEach(options.images, (file) => readImage(options.root, file))
  const input = [options.question, ...images]
  const { speaker } = options.actor
  const screen = yield* Screen
  const store = yield* Store.open(options.store, { exists: false })
  const { agent: named, ground } = yield* Actor.make(options.actor, store, options.store)
  const agent = named("agent")
  if (!options.detach) {
    const who = "model" in speaker ? speaker.model : "a scripted model"
    if (images.length > 0) yield* tellBlind(options, who, agent.model)
    yield* follow(Kernel.stream(agent, input), {
      ...options,
      title: `with ${who}, kept in a store`,
      kept: true
    }).pipe(Effect.provide(ground))
    return
  }
  const submitted = Effect.mapError(Kernel.submit(agent, input), Actor.failed)
  const runId = yield* Effect.provide(submitted, ground)
  const isPlain = options.form === "text" || options.form === "quiet"
  screen.out(`${isPlain ? Text.flat(runId) : Text.json({ runId })}\n`)
})
