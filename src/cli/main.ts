/**
 * The command line starts and ends here.
 */

import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import { codeOf } from "./exit.ts"
import { program } from "./program.ts"
import * as Screen from "./screen.ts"

// A terminal that is closed ends what runs in it as a signal to end does: servers and runs would be left to themselves.
process.on("SIGHUP", () => process.emit("SIGTERM"))

NodeRuntime.runMain(Effect.provide(program(process.argv.slice(2)), Screen.layerProcess), {
  disableErrorReporting: true,
  // Leaving while the output still waits in a pipe would cut it off.
  teardown: (exit, onExit) => void process.stdout.write("", () => onExit(codeOf(exit)))
})
