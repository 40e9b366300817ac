const source = (p: string) => "/work/main/" + p
export default {
  root: "/work/main",
  resolve: {
    alias: [
      { find: /^kernai$/, replacement: source("src/index.ts") },
      { find: /^kernai\/([a-z]+)$/, replacement: source("src/$1/index.ts") }
    ]
  },
  test: { include: ["scratchpad/dr/**/*.test.ts"], pool: "threads", testTimeout: 20000, reporters: ["default"] }
}
