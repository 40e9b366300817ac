import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Files that start processes come first: to fork costs the more, the larger this process has grown. */
class ProcessesFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const startsProcesses = ({ moduleId }: TestSpecification) => /\/test\/(cli|mcp|examples|readme|createKernai|reliability\/kills)\b/.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(startsProcesses), ...sorted.filter((file) => !startsProcesses(file))]
  }
}

export default defineConfig({
  resolve: {
    alias: [
      { find: /^kernai$/, replacement: source("./src/index.ts") },
      { find: /^kernai\/([a-z]+)$/, replacement: source("./src/$1/index.ts") },
      { find: /^kernai\/(.+)$/, replacement: source("./src/$1.ts") }
    ]
  },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/globalSetup.ts"],
    // Processes that tests start keep what they compile, as the installed command does.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache") },
    // Each worker is a process: one that had the memory of all would take several times as long to start another.
    pool: "forks",
    // Nothing here is global: files of a worker share the modules they import.
    isolate: false,
    // Much of the suite waits for processes and disks: a machine of two cores has three files at work.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: ProcessesFirst },
    testTimeout: 20_000
  }
})
