import { MockProvider } from "kernai/testing"

/** A program as a model would write it: one reply instead of four. */
export const program = `const { names } = await cities({ country: "Norway" })
const counts = await Promise.all(names.map((city) => population({ city })))
return names.filter((_, index) => counts[index] > 250_000)`

/** A scripted model. */
export const model = () =>
  MockProvider.make(`<block type="command" name="code">${program}</block>`, "<final>Oslo and Bergen.</final>")
