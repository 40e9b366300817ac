/**
 * A thread that runs one program. It imports nothing else of kernai, so that it starts fast.
 *
 * A message has the results of one or more steps; the reply is where the program then waits.
 */

import { parentPort, workerData } from "node:worker_threads"
import type { Program, Reply, Settled } from "./quickJsMessages.ts"

/** Times of a program are in UTC, on every machine. */
const useUtc = (): void => {
  for (const part of ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
    Object.defineProperty(Date.prototype, `get${part}`, { value: Reflect.get(Date.prototype, `getUTC${part}`) })
  }
  Object.defineProperty(Date.prototype, "getTimezoneOffset", { value: () => 0 })
}

/** Node warns that the removal of types is experimental. */
const keepQuiet = (): void => {
  process.emitWarning = () => {}
}

const open = async (program: Program) => {
  const [{ newQuickJSWASMModuleFromVariant }, { Execution }] = await Promise.all([
    import("quickjs-emscripten-core"),
    import("./quickJsExecution.ts")
  ])
  const module = await newQuickJSWASMModuleFromVariant(import("@jitl/quickjs-ng-wasmfile-release-sync"))
  return new Execution(program, module.newRuntime())
}

useUtc()
keepQuiet()
const opened = open(workerData)

// Listens before anything is loaded, since Deno keeps no message for later.
parentPort?.on("message", async (steps: ReadonlyArray<ReadonlyArray<Settled>>) => {
  const execution = await opened
  let reply: Reply | undefined
  for (const results of steps) reply = execution.next(results)
  parentPort?.postMessage(reply)
})
