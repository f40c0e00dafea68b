"""torch_geometric: layers, pooling, loaders, transforms and a short training on a small graph."""

import torch
from torch_geometric import nn as gnn
from torch_geometric import transforms as T
from torch_geometric import utils
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader

from .tools import backward, fill, integers, randn, train


def _graph(seed=0, nodes=8, edges=20):
    generator = torch.stack([integers(nodes, edges, seed=seed), integers(nodes, edges, seed=seed + 1)])
    return Data(
        x=randn(nodes, 5, seed=seed),
        edge_index=generator,
        edge_attr=randn(edges, 3, seed=seed + 2),
        y=integers(3, nodes, seed=seed),
    )


LAYERS = {
    "gcn": lambda: gnn.GCNConv(5, 4),
    "gat": lambda: gnn.GATConv(5, 4, heads=2),
    "gatv2": lambda: gnn.GATv2Conv(5, 4, heads=2, edge_dim=3),
    "sage": lambda: gnn.SAGEConv(5, 4),
    "sage max": lambda: gnn.SAGEConv(5, 4, aggr="max"),
    "gin": lambda: gnn.GINConv(torch.nn.Linear(5, 4)),
    "graph": lambda: gnn.GraphConv(5, 4),
    "cheb": lambda: gnn.ChebConv(5, 4, K=3),
    "tag": lambda: gnn.TAGConv(5, 4),
    "sg": lambda: gnn.SGConv(5, 4, K=2),
    "transformer": lambda: gnn.TransformerConv(5, 4, heads=2, edge_dim=3),
    "arma": lambda: gnn.ARMAConv(5, 4),
    "appnp": lambda: gnn.APPNP(3, 0.1),
    "pna": lambda: gnn.PNAConv(
        5, 4, ["mean", "max", "std"], ["identity", "amplification"], deg=torch.tensor([0, 2, 3, 2, 1])
    ),
    "edge": lambda: gnn.EdgeConv(torch.nn.Linear(10, 4)),
    "nn": lambda: gnn.NNConv(5, 4, torch.nn.Linear(3, 20)),
    "gine": lambda: gnn.GINEConv(torch.nn.Linear(5, 4), edge_dim=3),
    "gated": lambda: gnn.GatedGraphConv(6, 2),
    "res gated": lambda: gnn.ResGatedGraphConv(5, 4),
    "super": lambda: gnn.SuperGATConv(5, 4, heads=2),
}
WITH_ATTRIBUTES = ("gatv2", "transformer", "nn", "gine")


def layers_forward():
    g = _graph()
    rows = {}
    for name, make in LAYERS.items():
        layer = fill(make()).eval()
        rows[name] = layer(g.x, g.edge_index, g.edge_attr) if name in WITH_ATTRIBUTES else layer(g.x, g.edge_index)
    return rows


class Network(torch.nn.Module):
    """Two convolutions of a graph."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = gnn.GCNConv(5, 8), gnn.GATConv(8, 3), gnn.GraphNorm(8)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


def network_backward():
    g, model = _graph(), fill(Network())
    return backward(model, torch.nn.functional.cross_entropy(model(g.x, g.edge_index), g.y))


def network_training():
    g, model = _graph(), fill(Network())
    return train(model, lambda: torch.nn.functional.cross_entropy(model(g.x, g.edge_index), g.y))


def pooling_forward():
    batch = Batch.from_data_list([_graph(0), _graph(5, 6, 12)])
    pools = (gnn.global_add_pool, gnn.global_mean_pool, gnn.global_max_pool)
    aggregations = {
        "softmax": gnn.SoftmaxAggregation(),
        "std": gnn.StdAggregation(),
        "median": gnn.MedianAggregation(),
        "power": gnn.PowerMeanAggregation(),
    }
    top = fill(gnn.TopKPooling(5, 0.5))
    pooled = top(batch.x, batch.edge_index, batch=batch.batch)
    return [
        *(p(batch.x, batch.batch) for p in pools),
        {n: a(batch.x.abs(), batch.batch) for n, a in aggregations.items()},
        pooled[0],
        pooled[1],
        batch.ptr,
        gnn.global_sort_pool(batch.x, batch.batch, 3) if hasattr(gnn, "global_sort_pool") else 0,
    ]


def loader_other():
    rows = []
    for batch in DataLoader([_graph(i, 5 + i, 10) for i in range(5)], batch_size=2):
        rows.append([batch.x, batch.edge_index, batch.batch, batch.num_graphs, len(batch.to_data_list())])
    return rows


def utilities_other():
    g = _graph()
    undirected = utils.to_undirected(g.edge_index)
    return [
        undirected,
        utils.degree(g.edge_index[0], 8),
        utils.add_self_loops(g.edge_index)[0],
        utils.to_dense_adj(g.edge_index),
        utils.softmax(g.edge_attr, g.edge_index[1], num_nodes=8),
        utils.scatter(g.edge_attr, g.edge_index[1], dim=0, dim_size=8, reduce="mean"),
        utils.coalesce(g.edge_index, g.edge_attr),
        utils.k_hop_subgraph(0, 2, g.edge_index)[0],
        utils.subgraph(torch.tensor([0, 1, 2, 3]), g.edge_index, relabel_nodes=True)[0],
        utils.get_laplacian(undirected, normalization="sym")[1],
        utils.to_dense_batch(g.x, torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])),
        utils.contains_isolated_nodes(g.edge_index, 8),
        utils.is_undirected(undirected),
        utils.one_hot(g.y),
    ]


def transforms_other():
    g = T.Compose([T.ToUndirected(), T.AddSelfLoops(), T.NormalizeFeatures(), T.GCNNorm()])(_graph())
    positions = (
        T.KNNGraph(k=2)(Data(pos=randn(6, 3)))
        if False
        else T.Cartesian()(Data(pos=randn(6, 3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]])))
    )
    return [g.x, g.edge_index, g.edge_weight, positions.edge_attr, T.LocalDegreeProfile()(_graph()).x]


def heterogeneous_forward():
    data = HeteroData()
    data["a"].x, data["b"].x = randn(4, 3), randn(5, 2, seed=1)
    data["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 2, 4, 4]])
    data["b", "back", "a"].edge_index = torch.tensor([[0, 1, 4], [3, 2, 0]])
    layer = fill(
        gnn.HeteroConv({("a", "to", "b"): gnn.SAGEConv((3, 2), 4), ("b", "back", "a"): gnn.SAGEConv((2, 3), 4)})
    )
    return layer(data.x_dict, data.edge_index_dict)


def models_forward():
    g = _graph()
    rows = {}
    for name, model in {
        "gcn": gnn.GCN(5, 8, 2, 3),
        "gat": gnn.GAT(5, 8, 2, 3),
        "sage": gnn.GraphSAGE(5, 8, 2, 3),
        "gin": gnn.GIN(5, 8, 2, 3),
    }.items():
        rows[name] = fill(model).eval()(g.x, g.edge_index)
    autoencoder = fill(gnn.GAE(gnn.GCNConv(5, 4)))
    rows["autoencoder"] = autoencoder.decode(autoencoder.encode(g.x, g.edge_index), g.edge_index)
    return rows
