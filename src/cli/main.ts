/**
 * The process of the command line.
 */

import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import { codeOf } from "./exit.ts"
import { endAfterSigterm } from "./lastResort.ts"
import { program } from "./rootCommand.ts"
import * as Screen from "./screen.ts"

// A closed terminal ends the command like SIGTERM, so that its runs and servers shut down in order.
process.on("SIGHUP", () => process.emit("SIGTERM"))
// Longer than runs and skills are given to stop.
endAfterSigterm(9_800)

NodeRuntime.runMain(Effect.provide(program(process.argv.slice(2)), Screen.layerProcess), {
  disableErrorReporting: true,
  // Pending output in a pipe is written before the process exits.
  teardown: (exit, onExit) => void process.stdout.write("", () => onExit(codeOf(exit)))
})
