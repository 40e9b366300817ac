/**
 * A screen that remembers what was written, and where; and calls of the command line that write there.
 */
import { ConfigProvider, Effect, Layer } from "effect"
import { codeOf } from "../../src/cli/exit.ts"
import { program } from "../../src/cli/program.ts"
import { Screen } from "../../src/cli/screen.ts"

export interface Written {
  readonly out: () => string
  readonly progress: () => string
  readonly error: () => string
  readonly layer: Layer.Layer<Screen>
}

export const memoryScreen = (colors = false): Written => {
  const written = { out: "", progress: "", error: "" }
  const to = (where: keyof typeof written) => (text: string) => {
    written[where] += text
  }
  return {
    out: () => written.out,
    progress: () => written.progress,
    error: () => written.error,
    layer: Layer.succeed(Screen, {
      out: to("out"),
      progress: to("progress"),
      error: to("error"),
      columns: 100,
      colors
    })
  }
}

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly error: string
}

/**
 * Calls `kernai` in this process, as one of its own would be called: a start costs far more than most commands.
 *
 * `env` is all of the environment there is.
 */
export const kernai = (
  args: ReadonlyArray<string>,
  options: { readonly env?: { readonly [name: string]: string }; readonly colors?: boolean } = {}
): Effect.Effect<Ended & { readonly progress: string }> =>
  Effect.suspend(() => {
    const screen = memoryScreen(options.colors)
    return program(args).pipe(
      Effect.provide(screen.layer),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: options.env ?? {} })),
      Effect.exit,
      Effect.map((exit) => ({
        code: codeOf(exit),
        out: screen.out(),
        progress: screen.progress(),
        error: screen.error()
      }))
    )
  })
