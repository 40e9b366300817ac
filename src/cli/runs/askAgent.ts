/** Asks an agent: now, or later through a store and a worker. */

import * as Effect from "effect/Effect"
import { fileReader } from "../../store-kit/MediaScope.ts"
import * as Kernel from "../../Kernel.ts"
import * as Media from "../../Media.ts"
import * as Model from "../../Model.ts"
import { localCaller } from "../localCaller.ts"
import * as CliAgent from "../cliAgent.ts"
import type { RunFlags } from "../commands/runFlags.ts"
import { asFailure, usage } from "../exit.ts"
import { follow, type Form } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** The flags of `kernai run`, with a question and a form. */
type Options = RunFlags & Pick<CliAgent.Usual, "examples"> & { readonly question: string; readonly form: Form }

/** Asks an agent, and follows the run to its end. A run that is not stored does not ask before calls. */
export const ask = Effect.fnUntraced(function* (settings: Settings.Settings, options: Options) {
  const screen = yield* Screen
  const { form, question } = options
  const images = yield* readImages(options)
  const store =
    options.store === undefined ? Store.memory : yield* Store.openNamed({ ...options, store: options.store })
  const usual = { examples: options.examples ?? "general", ...(options.store === undefined ? { yes: true } : {}) }
  const { agent, kernel, model } = yield* CliAgent.make(settings, store, usual)
  const name = settings.model ?? (settings.script === undefined ? agent().name : "a scripted model")
  if (images.length > 0 && form === "text" && typeof model !== "string" && !Model.supports(model, "vision")) {
    screen.progress(`${Text.excerpt(name, 80)} may not be able to see images: it only learns that there is one\n`)
  }
  const title = `with ${name}${options.store === undefined ? "" : ", stored"}`
  return yield* Effect.gen(function* () {
    const withPrograms = yield* CliAgent.programs(settings)
    const events = Kernel.stream(withPrograms(agent()), [question, ...images], {
      context: Settings.contextOf(settings),
      caller: localCaller
    })
    return yield* follow(events, { ...options, title })
  }).pipe(Effect.scoped, Effect.provide(kernel))
})

/** Stores a question for a worker, and prints the id of its run. */
export const submit = Effect.fnUntraced(function* (
  settings: Settings.Settings,
  options: Options & { readonly store: string }
) {
  const screen = yield* Screen
  const images = yield* readImages(options)
  const { agent, kernel } = yield* CliAgent.make(settings, yield* Store.openNamed(options), {
    unused: "later"
  })
  const submitted = Kernel.submit(agent(), [options.question, ...images], {
    context: Settings.contextOf(settings),
    caller: localCaller
  })
  const runId = yield* submitted.pipe(Effect.mapError(asFailure), Effect.provide(kernel))
  const isPlain = options.form === "text" || options.form === "quiet"
  screen.out(`${isPlain ? Text.flat(runId) : Text.json({ runId })}\n`)
})

const readImages = ({ image, root }: Options) =>
  Effect.forEach(
    image,
    Effect.fnUntraced(function* (file) {
      const readFile = yield* fileReader(root)
      const name = Text.excerpt(file, 80)
      const bytes = yield* Effect.mapError(readFile(file), (reason) => usage(`${name} cannot be sent: ${reason}`))
      const mimeType = Media.mimeTypeOf(file)
      if (Media.kindOf(mimeType) !== "image") return yield* usage(`${name} is not an image by its extension`)
      return Media.fromBytes(bytes, mimeType)
    })
  )
