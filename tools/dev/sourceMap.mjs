// Thins source maps: one position for each line, which stack traces and breakpoints use, instead of one for each word.

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

const decode = (segment) => {
  const values = []
  let value = 0
  let shift = 0
  for (const digit of segment) {
    const bits = digits.indexOf(digit)
    value |= (bits & 31) << shift
    shift += 5
    if ((bits & 32) !== 0) continue
    values.push((value & 1) === 1 ? -(value >>> 1) : value >>> 1)
    value = 0
    shift = 0
  }
  return values
}

const encode = (value) => {
  let text = ""
  let rest = value < 0 ? (-value << 1) | 1 : value << 1
  do {
    text += digits[(rest & 31) | (rest > 31 ? 32 : 0)]
    rest >>>= 5
  } while (rest > 0)
  return text
}

/** Returns a source map with the first position of each line. */
export const byLine = (text) => {
  const map = JSON.parse(text)
  // Positions in sources are relative to the previous one: of all read, and of those kept.
  const read = [0, 0, 0]
  const kept = [0, 0, 0]
  const lines = map.mappings.split(";").map((line) => {
    let first = ""
    for (const segment of line.split(",")) {
      const [, ...source] = decode(segment)
      if (source.length === 0) continue
      for (const index of read.keys()) read[index] += source[index]
      if (first !== "") continue
      first = "A" + read.map((value, index) => encode(value - kept[index])).join("")
      read.forEach((value, index) => (kept[index] = value))
    }
    return first
  })
  return JSON.stringify({ ...map, names: [], mappings: lines.join(";") })
}
