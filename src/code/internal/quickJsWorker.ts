/**
 * A thread that runs one program. It imports nothing else of kernai, so that it starts fast.
 *
 * A message has the results of one or more steps; the reply is where the program then waits.
 */

import { parentPort, workerData } from "node:worker_threads"
import { newQuickJSWASMModuleFromVariant } from "quickjs-emscripten-core"
import { Execution } from "./quickJsExecution.ts"
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

const serve = async (program: Program): Promise<void> => {
  useUtc()
  keepQuiet()
  const module = await newQuickJSWASMModuleFromVariant(import("@jitl/quickjs-ng-wasmfile-release-sync"))
  const execution = new Execution(program, module.newRuntime())
  parentPort?.on("message", (steps: ReadonlyArray<ReadonlyArray<Settled>>) => {
    let reply: Reply | undefined
    for (const results of steps) reply = execution.next(results)
    parentPort?.postMessage(reply)
  })
}

await serve(workerData)
