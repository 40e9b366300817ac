import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files that start processes come first: to fork costs the more, the larger this process has grown. */
class ProcessesFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const startsProcesses = ({ moduleId }: TestSpecification) =>
      /\/test\/(cli|mcp|examples|readme|misspelt|createKernai|reliability\/kills)\b/.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(startsProcesses), ...sorted.filter((file) => !startsProcesses(file))]
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/globalSetup.ts"],
    setupFiles: ["tools/dev/imports.mjs"],
    // Processes that tests start keep what they compile, as the installed command does.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache") },
    // Node runs the sources as they are, found by the names under which users import them.
    execArgv: ["--conditions=kernai-source"],
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Each worker is a process: one that had the memory of all would take several times as long to start another.
    pool: "forks",
    // Nothing here is global: files of a worker share the modules they import.
    isolate: false,
    // Much of the suite waits for processes and disks: a machine of two cores has three files at work.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: ProcessesFirst },
    // A limit for what hangs, never for what is slow: a busy machine takes ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Failures, skips and a summary; `npm test -- --verbose` prints every test and every log.
    reporters: ["./tools/dev/skips.mjs", "minimal"],
    silent: true,
    // A failure is shown where the test stands, without the frames of the runtime.
    onStackTrace: (_, { file }) => !file.includes("/node_modules/")
  }
})
