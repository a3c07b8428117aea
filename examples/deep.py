"""Train a network on the neighbor objective: the handwritten digits in four numbers each.

    python examples/deep.py

Needs PyTorch: pip install 'vicinal[deep]'. The data ships with scikit-learn.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

import vicinal as vc
from vicinal.deep import ANNLoss

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
images, labels = torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train)

network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
loss = ANNLoss(alpha=1.0, loss="logistic", learn_temperature=True)
optimizer = torch.optim.AdamW([*network.parameters(), *loss.parameters()], lr=3e-3)

for epoch in range(1, 31):
    for batch in torch.randperm(len(images)).split(256):
        optimizer.zero_grad()
        value = loss(network(images[batch]), labels[batch])
        value.backward()
        optimizer.step()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {value.item():.4f}, temperature {loss.temperature:.3f}")


def embed(X):
    with torch.no_grad():
        return network(torch.tensor(X, dtype=torch.float32)).numpy()


print("Test digits that their 5 nearest training digits get right")
for name, transform in (
    ("64 pixels", lambda X: X),
    ("4 principal components", PCA(4).fit(X_train).transform),
    ("4 learned components", embed),
):
    knn = vc.ClassMeanKNN(rule="vote").fit(transform(X_train), y_train)
    print(f"{name:>24}: {knn.score(transform(X_test), y_test):.1%}")
