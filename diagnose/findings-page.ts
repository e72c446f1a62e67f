import { catalogue } from './catalogue.js'

const sections: Readonly<Record<string, string>> = {
  S: 'What a node does with a Service',
  K: 'What the objects in Kubernetes say',
  D: 'What the data plane holds, and what connections show',
  N: 'The node',
  P: 'The proxies on the node',
  C: 'The cluster, and access to it',
  M: 'Moving from kube-proxy',
}

/** docs/findings.md. `npx vitest run diagnose/findings-page.test.ts --update` writes it. */
export function findingsPage(): string {
  const codes = Object.entries(catalogue).map(([code, entry]) => ({ code, ...entry }))
  const parts = Object.entries(sections).map(([letter, title]) => {
    const rows = codes
      .filter(({ code }) => code.startsWith(`KPNG-${letter}`))
      .map((entry) => `| ${entry.code} | ${entry.level} | ${entry.title} | ${entry.why} | ${entry.todo} |`)
    return [
      `## ${title}`,
      '',
      '| code | level | what | why it matters | what to do |',
      '|---|---|---|---|---|',
      ...rows,
    ].join('\n')
  })
  return `# Findings

Everything that kpng can find wrong, by the codes that [\`kpng explain\`](ask-kpng.md), [\`kpng doctor\`](doctor.md), \`kpng get\` and the live page show. A code keeps its meaning for
ever, so scripts and alerts can rely on it. Each finding comes with the command that repairs it, or shows more; what is special about a case is in its own sentence.

A *problem* does not work. A *warning* works now, or only in part. A *note* is good to know. This page is made from \`diagnose/catalogue.ts\`.

${parts.join('\n\n')}
`
}
