/**
 * Asks an agent: here and now, or later through a store and a worker.
 */

import * as Effect from "effect/Effect"
import * as MediaFile from "../../internal/words/mediaFile.ts"
import * as Kernel from "../../Kernel.ts"
import * as Media from "../../Media.ts"
import * as Model from "../../Model.ts"
import * as CliAgent from "../cliAgent.ts"
import { fromError, usage } from "../exit.ts"
import { follow, type Options as FollowOptions } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** A question, and who is asked. */
export interface Options extends Pick<FollowOptions, "form" | "color"> {
  readonly agent: CliAgent.Options
  readonly question: string
  /** Files of pictures, inside `root`. */
  readonly image: ReadonlyArray<string>
  readonly root: string
  /** Default: the run is not stored, and its calls are not asked about. */
  readonly store?: string | undefined
  /** A config of MCP servers. */
  readonly mcp?: string | undefined
}

/** Asks, and follows the run to its end. */
export const ask = Effect.fnUntraced(function* (options: Options) {
  const screen = yield* Screen
  const { form, mcp, question } = options
  const isStored = options.store !== undefined
  const images = yield* readImages(options)
  const store = options.store === undefined ? Store.memory : yield* Store.openOrCreate(options.store)
  const described = { ...options.agent, yes: options.agent.yes || !isStored }
  const { agent, kernel, model } = yield* CliAgent.make(described, store, mcp)
  const name = described.source._tag === "Provider" ? described.source.name : "a scripted model"
  if (images.length > 0 && form === "text" && typeof model !== "string" && !Model.supports(model, "vision")) {
    screen.progress(`${Text.excerpt(name, 80)} is not known to see pictures: it only learns that there is one\n`)
  }
  const title = `with ${name}${isStored ? ", stored" : ""}`
  const events = Kernel.stream(agent("agent"), [question, ...images])
  return yield* Effect.provide(follow(events, { ...options, title, isStored }), kernel)
})

/** Stores a question for a worker, and prints the id of its run. */
export const submit = Effect.fnUntraced(function* (options: Options & { readonly store: string }) {
  const screen = yield* Screen
  const images = yield* readImages(options)
  const { agent, kernel } = yield* CliAgent.make(options.agent, yield* Store.openOrCreate(options.store))
  const submitted = Kernel.submit(agent("agent"), [options.question, ...images])
  const runId = yield* submitted.pipe(Effect.mapError(fromError), Effect.provide(kernel))
  const isPlain = options.form === "text" || options.form === "quiet"
  screen.out(`${isPlain ? Text.flat(runId) : Text.json({ runId })}\n`)
})

const readImages = ({ image, root }: Options) =>
  Effect.forEach(
    image,
    Effect.fnUntraced(function* (file) {
      const readFile = yield* MediaFile.make(root)
      const name = Text.excerpt(file, 80)
      const bytes = yield* Effect.mapError(readFile(file), (reason) => usage(`${name} cannot be sent: ${reason}`))
      const mimeType = Media.mimeTypeOf(file)
      if (Media.kindOf(mimeType) !== "image") return yield* usage(`${name} has no extension of an image`)
      return Media.fromBytes(bytes, mimeType)
    })
  )
