/**
 * A screen that remembers what was written, and where.
 */
import { Layer } from "effect"
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
