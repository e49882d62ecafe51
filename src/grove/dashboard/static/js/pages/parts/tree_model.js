/**
 * A set as a tree: replicas, their gangs, cliques and groups, and so on down to pods. Pure.
 *
 * Children are made on demand: a set of 20,000 pods has as many rows as are open.
 *
 * @typedef {object} TreeNode
 * @property {string} key
 * @property {string} kind a word for readers
 * @property {string} name
 * @property {string} [prefix] the part of the name that repeats the parent's
 * @property {string} [state] one word
 * @property {string} [count] such as `2/4 ready`
 * @property {string} [node]
 * @property {string} [gang] the key of a gang on the map
 * @property {string[]} [details]
 * @property {string} [why]
 * @property {boolean} good whether it and all below it is as desired
 * @property {{kind: string, name: string}} [object] whose YAML can be read
 * @property {() => TreeNode[]} children
 * @property {number} size how many children there are
 */

import { plural } from "./badges.js";

/** How many pods of a clique are shown, until more are asked for. */
export const PODS = 40;
/** How many rows are open at first. */
const OPEN_ROWS = { bad: 60, good: 24 };

/**
 * The replicas of a set.
 * @param {object} set SetView
 * @returns {TreeNode[]}
 */
export function roots(set) {
  return [...claims(set.claims, "set"), ...(set.members ?? []).map((replica) => replicaNode(set, replica))];
}

function branch(node, children, size) {
  return { children, size, ...node };
}

function leaf(node) {
  return { children: () => [], size: 0, ...node };
}

function replicaNode(set, replica) {
  const { gangs = [], cliques = [], groups = [] } = replica;
  const base = gangs[0];
  const running = gangs.length > 0 && gangs.every((gang) => gang.phase === "Running");
  const name = `${set.name}-${replica.index}`;
  return branch({
    key: `replica ${replica.index}`,
    kind: "replica",
    name: String(replica.index),
    state: base?.phase ?? "",
    count: podCount([...cliques, ...groups.flatMap(cliquesOf)]),
    good: running && cliques.every(cliqueIsGood) && groups.every(groupIsGood),
  }, () => [
    ...gangs.map((gang) => gangNode(set, gang, name)),
    ...claims(replica.claims, name),
    ...(replica.fabricDomains ?? []).map(fabricNode),
    ...cliques.map((clique) => cliqueNode(clique, name)),
    ...groups.map((group) => groupNode(group, name)),
  ], gangs.length + cliques.length + groups.length + (replica.claims?.length ?? 0) + (replica.fabricDomains?.length ?? 0));
}

function gangNode(set, gang, parent) {
  const domain = gang.domains?.[gang.name] ?? Object.values(gang.domains ?? {})[0];
  return leaf({
    key: `gang ${gang.name}`,
    kind: "gang",
    ...named(gang.name, parent),
    state: gang.phase,
    count: plural(gang.pods, "pod"),
    gang: `${set.namespace}/${gang.name}`,
    details: domain ? [domain] : [],
    why: gang.why,
    good: gang.phase === "Running",
    object: { kind: "podgang", name: gang.name },
  });
}

function groupNode(group, parent) {
  const members = group.members ?? [];
  return branch({
    key: `group ${group.name}`,
    kind: "group",
    ...named(group.name, parent),
    count: `${group.available}/${group.replicas} available`,
    details: group.needed < group.replicas ? [`${group.needed} needed`] : [],
    why: group.errors?.[0],
    good: groupIsGood(group),
    object: { kind: "podcliquescalinggroup", name: group.name },
  }, () => [
    ...claims(group.claims, group.name),
    ...members.map((member) => branch({
      key: `group ${group.name} ${member.index}`,
      kind: "group replica",
      name: String(member.index),
      count: podCount(member.cliques ?? []),
      details: member.gang ? [`gang ${member.gang}`] : [],
      good: (member.cliques ?? []).every(cliqueIsGood),
    }, () => [...claims(member.claims, `${group.name}-${member.index}`), ...(member.cliques ?? []).map((clique) => cliqueNode(clique, group.name))],
    (member.cliques?.length ?? 0) + (member.claims?.length ?? 0))),
  ], members.length + (group.claims?.length ?? 0));
}

function cliqueNode(clique, parent) {
  const pods = clique.pods ?? [];
  return branch({
    key: `clique ${clique.name}`,
    kind: "clique",
    ...named(clique.name, parent),
    count: `${clique.ready}/${clique.replicas} ready`,
    details: clique.needed < clique.replicas ? [`${clique.needed} needed`] : [],
    why: clique.errors?.[0],
    good: cliqueIsGood(clique),
    object: { kind: "podclique", name: clique.name },
    limited: true,
  }, () => [...claims(clique.claims, clique.name), ...pods.map((pod) => podNode(pod, clique.name))], pods.length + (clique.claims?.length ?? 0));
}

function podNode(pod, parent) {
  return leaf({
    key: `pod ${pod.name}`,
    kind: "pod",
    ...named(pod.name, parent),
    state: pod.state,
    node: pod.node,
    why: pod.why,
    good: pod.state === "ready" || pod.state === "succeeded",
    object: { kind: "pod", name: pod.name },
  });
}

function fabricNode(domain) {
  return leaf({
    key: `fabric ${domain.name}`,
    kind: "fabric domain",
    name: domain.name,
    state: domain.phase,
    count: `${domain.ready}/${domain.nodes} nodes ready`,
    details: [domain.reason, domain.partitions?.length && `partition ${domain.partitions.join(", ")}`].filter(Boolean),
    good: domain.phase === "Ready" && !domain.reason,
  });
}

function claims(found, parent) {
  return (found ?? []).map((claim) => leaf({
    key: `claim ${parent} ${claim.name}`,
    kind: "claim",
    ...named(claim.name, parent),
    state: claim.state,
    count: `used by ${plural(claim.pods, "pod")}`,
    good: claim.state !== "pending",
  }));
}

function cliquesOf(group) {
  return (group.members ?? []).flatMap((member) => member.cliques ?? []);
}

function podCount(cliques) {
  const [ready, all] = cliques.reduce(([one, sum], clique) => [one + clique.ready, sum + clique.replicas], [0, 0]);
  return `${ready}/${all} pods ready`;
}

function cliqueIsGood(clique) {
  return clique.ready >= clique.replicas && !clique.errors?.length;
}

function groupIsGood(group) {
  return group.available >= group.replicas && !group.errors?.length
    && cliquesOf(group).every(cliqueIsGood);
}

function named(name, parent) {
  return parent && name.startsWith(`${parent}-`) ? { name, prefix: `${parent}-` } : { name };
}

/**
 * Opens branches as long as there is room: those with something that is not as desired first, then the
 * others. What is open stays open, so that rows do not disappear below a reader.
 * @param {TreeNode[]} nodes
 * @param {Set<string>} open changed in place
 */
export function openFirst(nodes, open) {
  let rows = nodes.length;
  const bad = nodes.filter((node) => !node.good);
  const good = nodes.filter((node) => node.good);
  while (bad.length || good.length) {
    const node = bad.shift() ?? good.shift();
    if (!node.size) continue;
    const size = node.limited ? Math.min(node.size, PODS) : node.size;
    if (!open.has(node.key)) {
      if (rows + size > (node.good ? OPEN_ROWS.good : OPEN_ROWS.bad)) continue;
      open.add(node.key);
    }
    rows += size;
    for (const child of node.children()) (child.good ? good : bad).push(child);
  }
}
