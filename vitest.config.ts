import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  resolve: {
    alias: [
      { find: /^kernai$/, replacement: source("./src/index.ts") },
      { find: /^kernai\/([a-z]+)$/, replacement: source("./src/$1/index.ts") }
    ]
  },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/globalSetup.ts"],
    pool: "threads",
    // Nothing here is global: files of a worker share the modules they import.
    isolate: false,
    // Much of the suite waits for processes and disks: a machine of two cores has two files at work.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 20_000
  }
})
