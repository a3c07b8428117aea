"""From images to neighbors: a network whose nearest neighbors tell the class of a digit.

    python examples/deep.py

Needs PyTorch: pip install 'vicinal[deep]'. The data ships with scikit-learn.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from torch import nn

import vicinal as vc
from vicinal.deep import ANNLoss, embed

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)  # (1797, 1, 8, 8)
X_train, X_test, y_train, y_test = train_test_split(
    images, torch.tensor(digits.target), stratify=digits.target, random_state=0
)

network = nn.Sequential(
    *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(256, 4)),
)
loss = ANNLoss()
optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)

for epoch in range(1, 21):
    for batch in torch.randperm(len(X_train)).split(256):
        value = loss(network(X_train[batch]), y_train[batch])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {value.item():.4f}")

index = vc.ClassMeanKNN(rule="vote").fit(embed(network, X_train), y_train)
queries = embed(network, X_test)
distances, rows = index.kneighbors(queries[:3])
for i, (near, shares) in enumerate(zip(rows, index.predict_proba(queries[:3]), strict=True)):
    answer = f"{index.classes_[shares.argmax()]} by {shares.max():.0%} of the votes"
    print(f"test digit {i} is a {y_test[i]}; its neighbors are {y_train[near].tolist()}: {answer}")

print("Test digits that their 5 nearest training digits get right")
print(f"{'4 learned components':>24}: {index.score(queries, y_test):.1%}")
pixels = [part.flatten(1).numpy() for part in (X_train, X_test)]
for name, (near, far) in {
    "64 pixels": pixels,
    "4 principal components": map(PCA(4).fit(pixels[0]).transform, pixels),
}.items():
    knn = vc.ClassMeanKNN(rule="vote").fit(near, y_train)
    print(f"{name:>24}: {knn.score(far, y_test):.1%}")
